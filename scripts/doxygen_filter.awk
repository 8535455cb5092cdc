# Doxygen reads comments that begin with two stars; ours begin with one. `make docs` shows it the headers through this.
# The first comment after the license is that of the file. A comment after code on its line belongs to that code.
# SPDX-License-Identifier: Apache-2.0
/SPDX-License-Identifier/ || /^\/\* --- / { print; next }
!head && /^\/\* / { head = 1; sub(/^\/\* /, "/** @file\n * "); print; next }
/^ *\/\* / { sub(/\/\* /, "/** "); print; next }
/[^ ].*\/\* / { sub(/\/\* /, "/**< "); print; next }
{ print }
