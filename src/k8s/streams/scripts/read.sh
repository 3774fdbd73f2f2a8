# Prints its process id, and runs the script that its input begins with, up to the line `#end`. What it
# runs comes by its input since the address of a command is in audit logs, and is cut by some proxies.
echo "$$"
sandpool_script=
while IFS= read -r sandpool_line && [ "$sandpool_line" != '#end' ]; do
  sandpool_script=$sandpool_script$sandpool_line'
'
done
# The way is cut at once where something comes after its far end has gone, be it only the end of the
# input, and what was said and has not yet passed is lost. So that end is waited for.
trap 'while IFS= read -r sandpool_line; do :; done' EXIT
unset -v sandpool_line
eval "$sandpool_script"
