"""Print the completions of a shell. Nothing of sigwire runs when a key is pressed.

bash: eval "$(sigwire completion bash)" in ~/.bashrc. zsh: write it to _sigwire in a folder of $fpath.
fish: write it to ~/.config/fish/completions/sigwire.fish. PowerShell: add it to $PROFILE.
"""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

__all__ = ["SHELLS", "Offer", "add", "offers", "run"]

_FILES = ("FILE", "RECORDS", "STORE", "data")
"""Arguments whose values are files: by metavar or, without one, by name."""


class Offer(NamedTuple):
    """The words that fit a place of the command line, with their help; and whether files fit."""

    words: Mapping[str, str]
    files: bool = False


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire completion``."""
    parser.add_argument("shell", choices=[*SHELLS], help="the shell")


def run(options: Namespace) -> int:
    """Print the script of a shell; return the exit status."""
    from sigwire.commands.parser import parser

    shell = SHELLS[options.shell]
    rows = [shell.row(place, offer) for place, offer in offers(parser()).items()]
    print(shell.script.replace("ROWS", "\n".join(rows)))
    return 0


# --- the walk over the parser ------------------------------------------------------------------------------------


def offers(parser: ArgumentParser) -> dict[str, Offer]:
    """Return the offer for each place "VERB BEFORE". VERB is empty in front of the verb. BEFORE is the option whose value
    follows; else it is "-" for a word that begins with a dash, and empty for any other word.

    >>> made = ArgumentParser()
    >>> _ = made.add_argument("--log", metavar="FILE", help="the log")
    >>> [*offers(made)[" -"].words], offers(made)[" --log"]
    (['-h', '--help', '--log'], Offer(words={}, files=True))
    """
    # argparse has no public view of its arguments.
    verbs = {name: each for action in parser._actions for name, each in _verbs(action).items()}  # pyright: ignore[reportPrivateUsage]
    by_verb = {"": parser, **verbs}
    return {f"{verb} {before}": offer for verb, each in by_verb.items() for before, offer in _offers(each).items()}


def _offers(parser: ArgumentParser) -> dict[str, Offer]:
    """Return the offers of one verb, by what is before."""
    actions: list[Action] = parser._actions  # pyright: ignore[reportPrivateUsage]
    options = [action for action in actions if action.option_strings]
    arguments = [action for action in actions if not action.option_strings]
    words = {word: text for action in arguments for word, text in _words(action).items()}
    return {
        "": Offer(words, any(map(_is_file, arguments))),
        "-": Offer({name: _help(action) for action in options for name in action.option_strings}),
        **{
            name: Offer(_words(action), _is_file(action))
            for action in options
            if action.nargs != 0
            for name in action.option_strings
        },
    }


def _verbs(action: Action) -> dict[str, ArgumentParser]:
    choices = cast(Any, action.choices)
    return cast("dict[str, ArgumentParser]", choices) if isinstance(choices, dict) else {}


def _words(action: Action) -> dict[str, str]:
    """Return the words that an argument can be, with their help: that of the argument, but each verb has its own."""
    texts = {each.dest: each.help or "" for each in getattr(action, "_choices_actions", ())}
    return {str(choice): texts.get(choice) or _help(action) for choice in action.choices or ()}


def _help(action: Action) -> str:
    return " ".join(((action.help or "") % vars(action)).split())


def _is_file(action: Action) -> bool:
    return (action.metavar or action.dest) in _FILES


# --- the shells --------------------------------------------------------------------------------------------------
# Each script finds the verb and the word before, and looks up the place; ROWS are its places.


def _bash_row(place: str, offer: Offer) -> str:
    words = "\\n".join(offer.words)
    return f"    '{place}') words=$'{words}'{' files=-f' * offer.files} ;;"


def _zsh_row(place: str, offer: Offer) -> str:
    words = [_quoted(word.replace(":", "\\:") + f":{text}", "'\\''") for word, text in offer.words.items()]
    return f"    '{place}') offered=({' '.join(words)}){' files=1' * offer.files} ;;"


def _fish_row(place: str, offer: Offer) -> str:
    lines = [f"        case '{place}'"]
    for word, text in offer.words.items():
        quoted = _quoted(text.replace("\\", "\\\\"), "\\'")
        lines.append(f"            printf '%s\\t%s\\n' '{word}' {quoted}")
    return "\n".join([*lines, *['            __fish_complete_path "$argv[2]"'] * offer.files])


def _powershell_row(place: str, offer: Offer) -> str:
    words = [f"'{word}' = {_quoted(text or word, chr(39) * 2)}" for word, text in offer.words.items()]
    return f"        '{place}' = [ordered]@{{ {'; '.join(words)} }}"


def _quoted(text: str, quote: str) -> str:
    return "'" + text.replace("'", quote) + "'"


class _Shell(NamedTuple):
    row: Callable[[str, Offer], str]
    script: str


_BASH = """\
# Completions of sigwire for bash, made by: sigwire completion bash
_sigwire_offer() {
  case "$1" in
ROWS
    *) return 1 ;;
  esac
}
_sigwire() {
  local IFS=$'\\n' word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" verb= kind= words= files= each
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [[ $each == -* ]] || { verb=$each; break; }
  done
  [[ $word == -* ]] && kind=-
  _sigwire_offer "$verb $before" || _sigwire_offer "$verb $kind"
  COMPREPLY=($(compgen $files -W "$words" -- "$word"))
}
complete -o filenames -F _sigwire sigwire"""

_ZSH = """\
#compdef sigwire
# Completions of sigwire for zsh, made by: sigwire completion zsh
_sigwire_offer() {
  case "$1" in
ROWS
    *) return 1 ;;
  esac
}
_sigwire() {
  local verb= kind= files= each
  local -a offered
  for each in "${(@)words[2,CURRENT-1]}"; do
    [[ $each == -* ]] || { verb=$each; break }
  done
  [[ $words[CURRENT] == -* ]] && kind=-
  _sigwire_offer "$verb $words[CURRENT-1]" || _sigwire_offer "$verb $kind"
  (( $#offered )) && _describe sigwire offered
  [[ -z $files ]] || _files
}
if [[ $funcstack[1] == _sigwire ]]; then _sigwire "$@"; else compdef _sigwire sigwire; fi"""

_FISH = """\
# Completions of sigwire for fish, made by: sigwire completion fish
function __sigwire_offer
    switch "$argv[1]"
ROWS
        case '*'
            return 1
    end
end
function __sigwire
    set -l given (commandline -opc)
    set -l word (commandline -ct)
    set -l verb (string match -v -- '-*' $given)[2]
    set -l kind (string match -r -- '^-' "$word")
    __sigwire_offer "$verb $given[-1]" "$word"; or __sigwire_offer "$verb $kind" "$word"
end
complete -c sigwire -f -a '(__sigwire)'"""

_POWERSHELL = """\
# Completions of sigwire for PowerShell, made by: sigwire completion powershell
Register-ArgumentCompleter -Native -CommandName sigwire -ScriptBlock {
    param($word, $line, $cursor)
    $offers = @{
ROWS
    }
    $given = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
    $verb = "$($given | Where-Object { $_ -notlike '-*' } | Select-Object -Skip 1 -First 1)"
    $place = "$verb $($given | Select-Object -Last 1)"
    if (-not $offers.ContainsKey($place)) { $place = "$verb $(if ($word -like '-*') { '-' })" }
    if (-not $offers.ContainsKey($place)) { return }
    $offers[$place].GetEnumerator() | Where-Object { $_.Key -like "$word*" } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_.Key, $_.Key, 'ParameterValue', $_.Value)
    }
}"""

SHELLS: Mapping[str, _Shell] = {
    "bash": _Shell(_bash_row, _BASH),
    "zsh": _Shell(_zsh_row, _ZSH),
    "fish": _Shell(_fish_row, _FISH),
    "powershell": _Shell(_powershell_row, _POWERSHELL),
}
