#!/usr/bin/env bash
# run_trained.sh OPFUSE SOURCE FOLDER: the section of docs/tutorial.md about trained networks, command by command, in an environment
# of its own. Exit status 77 (skipped) where PyPI cannot be reached.
set -euo pipefail
binary=$1 source=$2 folder=$3
mkdir -p "$folder/bin"
ln -sf "$binary" "$folder/bin/opfuse"
[[ -x $folder/venv/bin/python ]] || python3 -m venv "$folder/venv"
export PATH=$folder/bin:$folder/venv/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_QUIET=1 PYTHONDONTWRITEBYTECODE=1
cd "$folder"
ln -sfn "$source/examples" examples
commands=$(sed -n '/^## A photograph/,/^## The same/p' "$source/docs/tutorial.md" | sed -n '/^```bash$/,/^```$/p' | grep -v '^```')
[[ $(grep -c . <<<"$commands") -ge 8 ]] || { echo "the section of docs/tutorial.md has fewer commands than expected" >&2; exit 1; }
while read -r command; do
  echo "$ $command"
  case $command in
    pip*) eval "$command" || { echo "skipped: packages of PyPI are not to be had"; exit 77; } ;;
    "opfuse bench"* | "opfuse report"*) eval "$command --duration 200ms --warmup 20ms" ;;
    *) eval "$command" ;;
  esac
done <<<"$commands"
[[ -s trained/photo.html ]]
answers=$(python -B examples/trained/read_results.py trained)
grep -q "photo: opfuse says 'class 251 (dalmatian)'" <<<"$answers" && grep -q "line: opfuse says 'fused into one launch'" <<<"$answers"
echo "trained: ok"
