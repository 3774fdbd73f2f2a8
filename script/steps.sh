# Sourced by scripts. Expects `root` to be set.

# step TEXT COMMAND...: shows the command's output only if it fails.
step() {
  local text=$1 log status=0 started=$SECONDS
  shift
  log=$(mktemp "${TMPDIR:-/tmp}/sandpool-step.XXXXXX")
  printf '%s ...\n' "$text"
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" -ne 0 ]; then
    printf '%s: failed with exit code %s. Its output:\n' "$text" "$status" >&2
    tail -n 200 "$log" >&2
    rm -f "$log"
    return "$status"
  fi
  rm -f "$log"
  printf '%s: done in %s s\n' "$text" "$((SECONDS - started))"
}

# fail TEXT...: says so and ends the script.
fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

# newer FILE PATH...: whether a path, or anything below it, is newer, or the file is missing.
newer() {
  local file=$1
  shift
  [ ! -e "$file" ] || [ -n "$(find "$@" -newer "$file" -print -quit)" ]
}

# alone: waits until no other script of this folder installs or builds, and locks them out.
alone() {
  command -v flock >/dev/null || return 0
  exec 9<"$root/script"
  flock -n 9 || { echo 'waiting for another script of this folder ...'; flock -w 900 9 || fail 'gave up after 15 minutes'; }
}

# note_build FOLDER: writes commit and date into FOLDER/build.json: from SANDPOOL_COMMIT and SANDPOOL_COMMIT_DATE, else
# from git, else a hash of the sources, which keeps an existing note.
note_build() {
  local commit=${SANDPOOL_COMMIT:-} date=${SANDPOOL_COMMIT_DATE:-}
  if [ -z "$commit" ] && [ -e "$root/.git" ] && commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null); then
    date=$(git -C "$root" log -1 --format=%cs)
    git -C "$root" diff --quiet HEAD -- src config package.json || commit+=-changed
  fi
  if [ -z "$commit" ]; then
    [ ! -e "$1/build.json" ] || return 0
    commit=sources-$(cd "$root" && find src -type f ! -path '*/generated/*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-12)
  fi
  [[ $commit =~ ^[0-9A-Za-z-]+$ ]] || fail "SANDPOOL_COMMIT may have letters, digits and hyphens only: $commit"
  printf '{ "commit": "%s", "date": "%s" }\n' "$commit" "${date:-$(date -u +%F)}" >"$1/build.json"
}

# compile_to FOLDER: src/ as JavaScript, with its other files and the client's types. Types are not checked, which takes six times as long: npm run check does. Into a folder beside it first: a failed build leaves the old one as it was. `step` runs this without errexit.
compile_to() {
  local next
  next=$(dirname "$1")/.next-$(basename "$1")
  cd "$root" &&
    rm -rf "$next" &&
    node --import tsx script/client-types.ts &&
    node node_modules/typescript/bin/tsc -p tsconfig.build.json --noCheck --outDir "$next" &&
    (cd src && find . -type f ! -name '*.ts' -exec cp --parents -t "$next" {} +) &&
    touch "$next/.built" &&
    rm -rf "$1" &&
    mv "$next" "$1"
}
