# Goes before a script whose input ends whatever it says. The way is cut at once where something comes after
# its far end has gone, be it only that end, and what was said and has not yet passed is lost.
trap 'while IFS= read -r sandpool_line; do cat >/dev/null 2>&1; done' EXIT
