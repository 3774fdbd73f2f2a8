# Prints what a name is, and of a link also what it says.
read_text
show "$text"
[ ! -L "$text" ] || readlink -n -- "$text" || :
