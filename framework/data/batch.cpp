#include "framework/data/batch.hpp"

#include "framework/core/error.hpp"

namespace quantrain {

int64_t Batch::size() const {
  if (!labels.empty()) return static_cast<int64_t>(labels.size());
  if (input.defined()) return input.dim(0);
  return targets.empty() || !targets[0].defined() ? 0 : targets[0].dim(0);
}

std::vector<Tensor> Batch::inputs() const {
  std::vector<Tensor> all{input};
  all.insert(all.end(), more_inputs.begin(), more_inputs.end());
  return all;
}

std::span<const uint8_t> Batch::bytes() const& {
  const std::shared_ptr<const Codes> codes = input.defined() ? input.source_codes() : nullptr;
  if (codes == nullptr) {
    throw DataError(
        "batch",
        "the input has no codes: it was not made from codes, or was changed or moved from. "
        "Call bytes() before you change or move the input, or make codes with "
        "IntegerModel::quantize_input");
  }
  return {codes->u8(), static_cast<size_t>(codes->bytes.size())};
}

Tensor cross_entropy(const Tensor& logits, const Batch& batch, const CrossEntropyOptions& options) {
  if (batch.targets.size() == 1) return cross_entropy(logits, batch.targets[0], options);
  if (batch.targets.empty() && !batch.labels.empty())
    return cross_entropy(logits, batch.labels, options);
  throw DataError("cross_entropy",
                  "the batch has no labels and ",
                  batch.targets.size(),
                  " targets, expected labels or one target: pass the labels or the target that "
                  "belongs to these logits");
}

}  // namespace quantrain
