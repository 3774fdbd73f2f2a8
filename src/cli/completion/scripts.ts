/**
 * At a TAB, a script passes the words before the cursor to `sandpool __complete`, which prints one
 * `word<TAB>description` a line. The directive `:files` completes file names, and `:nospace` adds
 * no space.
 */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

export const completionScript = (shell: Shell): string => SCRIPTS[shell].trimStart();

const BASH = String.raw`
# Completion of sandpool for bash. Load it with: source <(sandpool completion bash)
_sandpool() {
  local line word=''
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :files) compopt -o default ;;
      :nospace) compopt -o nospace ;;
      *) word=${'$'}{line%%$'\t'*}; COMPREPLY+=("$word") ;;
    esac
  done < <("${'$'}{COMP_WORDS[0]}" __complete -- "${'$'}{COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _sandpool sandpool
`;

const ZSH = String.raw`
#compdef sandpool
# Completion of sandpool for zsh. Load it with: source <(sandpool completion zsh)
_sandpool() {
  local line files=0
  local -a found suffix
  local -a given=("${'$'}{(@)words[2,CURRENT]}")
  for line in "${'$'}{(@f)$("${'$'}{words[1]}" __complete -- "${'$'}{(@)given}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :files) files=1 ;;
      :nospace) suffix=(-S '') ;;
      *) found+=("${'$'}{${'$'}{line%%$'\t'*}//:/\\:}:${'$'}{line#*$'\t'}") ;;
    esac
  done
  (( ${'$'}{#found} )) && _describe -V sandpool found $suffix
  (( files )) && _files
}
(( ${'$'}{+functions[compdef]} )) || { autoload -Uz compinit && compinit; }
compdef _sandpool sandpool
`;

const FISH = String.raw`
# Completion of sandpool for fish. Load it with: sandpool completion fish | source
function __sandpool_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in ($words[1] __complete -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':nospace'
            case '*'
                echo $line
        end
    end
end
complete -c sandpool -f -a '(__sandpool_complete)'
`;

const SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
