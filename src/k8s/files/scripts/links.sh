# Prints what links say, each before a NUL. Input: the folder, then the names, each before a NUL.
read_text
cd -- "$text" 2>/dev/null || refuse 'Permission denied'
xargs -0 /bin/sh -c 'for each; do readlink -n -- "$each"; printf "\\0"; done' sh
