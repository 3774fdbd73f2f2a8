# What commands and terminals begin with. Prints the process id, and names the character encoding that
# every sandbox has, unless the image or the template named one.
echo "$$"
: "${LANG:=C.UTF-8}"
export LANG
