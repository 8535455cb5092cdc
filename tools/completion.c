/* SPDX-License-Identifier: Apache-2.0 */
/* lathe completion: what bash, zsh and fish complete, made from the tables. */
#include "cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *help;
} verbs[] = {
#define VERB(id, name, args, fn, help, examples) {name, help},
#include "api/options.def"
};

typedef struct completion_row {
    const char *name;
    char letter;
    const char *value;
    uint32_t verbs;
    const char *brief;
} completion_row;

static const completion_row options[] = {
#define OPTION(id, name, letter, value, verbs, brief, more) {name, letter, value, verbs, brief},
#include "api/options.def"
};

static bool takes(const completion_row *o, uint32_t verb)
{
    return (o->verbs >> verb & 1u) != 0;
}

/* The value is one of a few words, "c|module|graph"; not a number or a name that the user thinks of. */
static bool is_choice(const completion_row *o)
{
    bool choice = o->value && strchr(o->value, '|');
    for (const char *s = choice ? o->value : ""; *s; s++)
        choice &= (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9') || strchr("|_-", *s);
    return choice;
}

static bool is_path(const completion_row *o)
{
    static const char *const words[] = {"FILE", "DIR", "PATH", "OUT"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (o->value && strstr(o->value, words[i]))
            return true;
    return false;
}

/* Text with `of` escaped: in single quotes for fish and zsh, where zsh has more that it reads. */
static void quoted(const char *text, const char *of)
{
    for (; *text; text++)
        if (*text == '\'')
            printf("'\\''");
        else
            printf(strchr(of, *text) ? "\\%c" : "%c", *text);
}

/* The words of a choice with a space between them. */
static void put_words(const char *choice)
{
    for (; *choice; choice++)
        putchar(*choice == '|' ? ' ' : *choice);
}

static void bash(void)
{
    printf("# bash completion for lathe\n_lathe()\n{\n    local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} "
           "words=\n"
           "    if [ \"$COMP_CWORD\" = 1 ]; then\n        words=\"");
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        printf("%s ", verbs[v].name);
    printf("--help --version\"\n    else\n        case $verb in\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf("        %s) words=\"", verbs[v].name);
        for (uint32_t o = 0; o < OPT_COUNT; o++)
            if (takes(&options[o], v))
                printf("--%s ", options[o].name);
        printf("\" ;;\n");
    }
    printf("        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    [ ${#COMPREPLY[@]} = 0 ] && COMPREPLY=($(compgen -f -- \"$word\"))\n}\ncomplete -o filenames -F _lathe "
           "lathe\n");
}

static void zsh(void)
{
    printf("#compdef lathe\n# zsh completion for lathe\n_lathe()\n{\n    local -a verbs=(\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf("        '%s:", verbs[v].name);
        quoted(verbs[v].help, "\\");
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n    fi\n"
           "    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n    case $verb in\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf("    %s) _arguments", verbs[v].name);
        for (uint32_t i = 0; i < OPT_COUNT; i++) {
            const completion_row *o = &options[i];
            if (!takes(o, v))
                continue;
            printf(" \\\n        '%s--%s%s[", o->verbs & OPTION_SEVERAL ? "*" : "", o->name, o->value ? "=" : "");
            quoted(o->brief, "\\[]:");
            printf("]");
            if (is_choice(o)) {
                printf(":value:(");
                put_words(o->value);
                printf(")");
            } else if (o->value) {
                printf(is_path(o) ? ":file:_files" : ":value:");
            }
            printf("'");
        }
        printf(" \\\n        '*:file:_files' ;;\n");
    }
    printf("    esac\n}\n_lathe \"$@\"\n");
}

static void fish(void)
{
    printf("# fish completion for lathe\n");
    for (uint32_t v = 0; v < VERB_COUNT; v++) {
        printf("complete -c lathe -n __fish_use_subcommand -f -a %s -d '", verbs[v].name);
        quoted(verbs[v].help, "\\");
        printf("'\n");
    }
    for (uint32_t v = 0; v < VERB_COUNT; v++)
        for (uint32_t i = 0; i < OPT_COUNT; i++) {
            const completion_row *o = &options[i];
            if (!takes(o, v))
                continue;
            printf("complete -c lathe -n '__fish_seen_subcommand_from %s' -l %s", verbs[v].name, o->name);
            if (o->letter)
                printf(" -s %c", o->letter);
            if (is_choice(o)) {
                printf(" -x -a '");
                put_words(o->value);
                printf("'");
            } else if (o->value) {
                printf(is_path(o) ? " -r" : " -x");
            }
            printf(" -d '");
            quoted(o->brief, "\\");
            printf("'\n");
        }
}

bool cmd_completion(ask *x)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const char *shell = x->args.len == 1 ? x->args.data[0] : "";
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, shell) == 0) {
            shells[i].print();
            return true;
        }
    return ask_usage_error(x, "lathe completion bash > /etc/bash_completion.d/lathe",
                           "completion exists for bash, zsh and fish, not for '%.100s'", shell);
}
