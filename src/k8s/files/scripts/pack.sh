# Prints a folder as an archive, behind a line `folder`. What is mounted below is left out. Ends with 9
# where a file became shorter, or could not be read further, while it was packed.
command -v tar >/dev/null || refuse 'lacking tar'
read_text
must stat -L -c %s -- "$text"
[ -d "$text" ] || refuse 'Not a directory'
[ -r "$text" ] && cd -- "$text" 2>/dev/null || refuse 'Permission denied'
here=$(pwd -P)
here=${here%/}
set --
while IFS=' ' read -r _ _ _ _ mount _; do
  case $mount in "$here"/?*) set -- "$@" "--exclude=.${mount#"$here"}/*" ;; esac
done 2>/dev/null </proc/self/mountinfo
echo folder
exec 3>&1
tar -cf - "$@" . 2>&1 >&3 3>&- | {
  cut=
  while IFS= read -r line; do
    case $line in *shrank* | *'short read'* | *'ead error'*) cut=yes ;; esac
  done
  [ -z "$cut" ]
} || exit 9
