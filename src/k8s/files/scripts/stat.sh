# Prints what a name is, and of a link also what it says, before a NUL.
read_text
show "$text"
[ ! -L "$text" ] || { readlink -n -- "$text"; printf '\0'; }
