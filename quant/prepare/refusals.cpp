#include "quant/prepare/refusals.hpp"

#include <algorithm>

#include "framework/core/error.hpp"
#include "framework/core/text_stream.hpp"

namespace quantrain::quant {

void Refusals::keep() { keep(std::current_exception()); }

void Refusals::keep(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& reason) {
    if (first_ == nullptr) first_ = error;
    any_other_ = any_other_ || dynamic_cast<const QuantError*>(&reason) == nullptr;
    if (std::find(texts_.begin(), texts_.end(), reason.what()) == texts_.end())
      texts_.emplace_back(reason.what());
  }
}

void Refusals::throw_all(std::string_view where) const {
  if (texts_.empty()) return;
  if (texts_.size() == 1) std::rethrow_exception(first_);
  TextStream list;
  for (const std::string& text : texts_) list << "\n  " << text;
  constexpr const char* kAdvice =
      "\nLayerConfig::quantize = false keeps a layer in float; it can be trained, but not "
      "converted";
  if (any_other_)
    throw GraphError(
        where, texts_.size(), " reasons why it cannot be quantized:", list.str(), kAdvice);
  throw QuantError(
      where, texts_.size(), " reasons why it cannot be quantized:", list.str(), kAdvice);
}

void refuse_batch_axis(const std::string& where, const GraphNode& node) {
  throw GraphError(where,
                   "a ",
                   node.type(),
                   " of the batch axis has no integer form: ",
                   node.inputs[0].shape(),
                   " to ",
                   node.output.shape());
}

}  // namespace quantrain::quant
