/* SPDX-License-Identifier: Apache-2.0 */
/* lathe completion: what a shell completes, made of the tables. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const char *const verbs[] = {
#define VERB(id, name, args, fn, help, examples) name,
#include "api/options.def"
};

static const struct {
    const char *name;
    uint32_t verbs;
} options[] = {
#define OPTION(id, name, letter, value, verbs, help) {name, verbs},
#include "api/options.def"
};

bool cmd_completion(ask *x)
{
    const char *shell = x->args.len == 1 ? x->args.data[0] : "";
    if (strcmp(shell, "bash") != 0)
        return ask_usage_error(x, "lathe completion bash > /etc/bash_completion.d/lathe",
                               "completion is there for bash, not for '%.100s'", shell);
    printf("# bash completion for lathe\n_lathe()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} "
           "words=\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"");
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        printf("%s ", verbs[v]);
    printf("--help --version\"\n    else\n        case $verb in\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf("        %s) words=\"", verbs[v]);
        for (uint32_t o = 0; o < OPT_COUNT; o++)
            if (options[o].verbs >> v & 1u)
                printf("--%s ", options[o].name);
        printf("\" ;;\n");
    }
    printf("        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    [ ${#COMPREPLY[@]} = 0 ] && COMPREPLY=($(compgen -f -- \"$word\"))\n}\ncomplete -o filenames -F _lathe "
           "lathe\n");
    return true;
}
