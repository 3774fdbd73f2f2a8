# Lists the processes, or the one that the input names, as `describe` does.
IFS= read -r wanted || exit 125
find_base && cd "$base/$room" 2>/dev/null || exit 0
for each in ${wanted:-*}; do
  cd "./$each" 2>/dev/null || continue
  describe "$each"
  cd "$base/$room" 2>/dev/null || exit 0
done
