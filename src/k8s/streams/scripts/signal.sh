# Arguments: a shell with a terminal, and a signal for what runs in its foreground; for itself where no
# terminal is its own.
text=
while IFS= read -r line; do text="$text $line"; done <"/proc/$1/stat"
pid=$1 sign=$2
set -- ${text##*) }
if [ "${6:-0}" -gt 0 ]; then kill -s "$sign" -- "-$6"; else kill -s "$sign" "$pid"; fi
