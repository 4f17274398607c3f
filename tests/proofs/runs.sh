# What proofs that compare training runs need; they source this file.

# tensors FOLDER: the data of the folder's last safetensors file, without the header, which says how long the run took.
tensors() {
  local file header
  file=$1/$(ls "$1" | tail -1)
  header=$(od -An -t u8 -N 8 "$file" | tr -d ' ')
  tail -c +$((9 + header)) "$file"
}
# equal_ends A B: whether two runs ended with the same model and the same states of network and optimizer.
equal_ends() {
  local stage
  cmp -s "$1/model" "$2/model" || return 1
  for stage in float QAT; do
    cmp -s <(tensors "$1/checkpoints/$stage") <(tensors "$2/checkpoints/$stage") || return 1
  done
}
