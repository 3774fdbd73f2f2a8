# Lists the processes, or the one that the input names, as `describe` does, and `.` behind the last.
IFS= read -r wanted || exit 125
if find_base && cd "$base/$room" 2>/dev/null; then
  for each in ${wanted:-*}; do
    cd "./$each" 2>/dev/null || continue
    describe "$each"
    cd "$base/$room" 2>/dev/null || break
  done
fi
echo .
