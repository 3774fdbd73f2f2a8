# Lists a folder. Input: the depth, the name, and once it has printed all names, each before a NUL, and an
# empty one, those that are wanted likewise. Prints for each of these what it is, and its name, and in the
# end a NUL.
IFS= read -r depth || exit 125
read_text
must stat -L -c %s -- "$text"
[ -d "$text" ] || refuse 'Not a directory'
cd -- "$text" 2>/dev/null || refuse 'Permission denied'
echo folder
find . -mindepth 1 -maxdepth "$depth" -name '.sandpool-*.part' -prune -o -print0 2>/dev/null
printf '\0'
xargs -0 stat -c "$FORMAT %n" --
case $? in 0 | 123) printf '\0' ;; esac # 123: of some that are gone meanwhile
