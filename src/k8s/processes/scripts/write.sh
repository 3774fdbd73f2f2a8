# Hands input over to a process. Input: an id of the piece, its length, and the bytes. Prints `put`, and
# `taken` or `closed` once it was.
IFS= read -r piece && IFS= read -r length || exit 125
[ -e closed ] && { echo closed; exit; }
mkfifo "k.$piece" && exec 3<>"k.$piece" || gone
trap 'rm -f "k.$piece" "x.$piece"' EXIT # in place of what await-end.sh does: all is read here
cat >"x.$piece"
size=$(wc -c <"x.$piece")
[ $((size)) -eq "$length" ] || { echo short; exit; }
# Whoever took it back said so first.
[ -e "n.$piece" ] && exit
mv "x.$piece" "q.$piece" 2>/dev/null || gone
echo put
[ ! -p wake ] || echo 1<>wake
# It may have been closed before it saw this.
[ -e closed ] && mv "q.$piece" "x.$piece" 2>/dev/null && { echo closed; exit; }
IFS= read -r word <&3
echo "$word"
