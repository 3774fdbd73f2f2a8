# Opens a file, prints what it is, and once it reads where to begin and how many bytes, those. The end
# of the input ends it.
read_text
what=$(stat -L -c '%F' -- "$text" 2>&1) || complain "$what"
[ ! -d "$text" ] || refuse 'Is a directory'
[ -f "$text" ] || refuse 'not a file'
[ -r "$text" ] || refuse 'Permission denied'
command exec 4<"$text" || refuse 'No such file or directory'
show /proc/self/fd/4 -L
IFS=' ' read -r start count whole || exit 0
if [ "$start" -gt 0 ]; then
  tail -c "+$((start + 1))" <&4 | head -c "$count" &
elif [ "$whole" = yes ]; then
  cat <&4 &
else
  head -c "$count" <&4 &
fi
printer=$!
exec 4<&-
await_printer
