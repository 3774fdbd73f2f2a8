# What scripts about one process begin with: its id is the next line of input. Prints `gone` where
# there is none.
gone() { echo gone; exit; }
IFS= read -r id || exit 125
find_base && cd "$base/$room/$id" 2>/dev/null && read_record || gone
