#include "tools/data.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/splitmix64.hpp"
#include "tools/command.hpp"
#include "tools/data_files.hpp"
#include "tools/flags.hpp"

namespace quantrain::tools {
namespace {

using Extents = std::vector<int64_t>;

/// [C, ...] -> [..., C] for each sample.
template <class T>
std::vector<T> channels_last(const std::vector<T>& values, const Extents& shape, int64_t size) {
  const auto channels = static_cast<size_t>(shape[0]);
  const size_t inner = static_cast<size_t>(shape_of(shape).elements()) / channels;
  std::vector<T> moved(values.size());
  for (size_t n = 0; n < static_cast<size_t>(size); ++n) {
    const T* const from = values.data() + n * channels * inner;
    T* const to = moved.data() + n * channels * inner;
    for (size_t c = 0; c < channels; ++c) {
      for (size_t i = 0; i < inner; ++i) to[i * channels + c] = from[c * inner + i];
    }
  }
  return moved;
}

Extents moved_last(const Extents& shape) {
  Extents moved(shape.begin() + 1, shape.end());
  moved.push_back(shape[0]);
  return moved;
}

/// Gives the samples the model's shape, if only the place or the absence of channels differs.
void fit_shape(const DataFlags& flags, const Model& model, Data& data) {
  const Extents expected = model.input_shape();
  const Extents in_file = data.shape;
  const bool same_size = data.shape.size() == 1 && !expected.empty() &&
                         shape_of(data.shape).elements() == shape_of(expected).elements();
  if (flags.layout == "nchw" && same_size && expected.size() >= 2) {
    data.shape = {expected.back()};  // a flat row holds one channel after the other
    data.shape.insert(data.shape.end(), expected.begin(), expected.end() - 1);
  }
  const bool can_move = data.format == "npy" && data.shape.size() >= 2;
  const bool fits = expected.empty() || data.shape == expected;
  if (can_move && flags.layout != "nhwc" &&
      (flags.layout == "nchw" || (!fits && moved_last(data.shape) == expected))) {
    data.bytes = channels_last(data.bytes, data.shape, data.bytes.empty() ? 0 : data.size);
    data.floats = channels_last(data.floats, data.shape, data.floats.empty() ? 0 : data.size);
    data.shape = moved_last(data.shape);
  }
  if (expected.empty() || data.shape == expected) return;
  Extents with_channel = data.shape;
  with_channel.push_back(1);
  if (with_channel == expected || same_size) {
    data.shape = expected;
    return;
  }
  if (data.format == "csv") {
    throw DataError(flags.path,
                    "has rows ",
                    shape_of(data.shape),
                    " (",
                    joined(data.columns),
                    "), the model takes ",
                    shape_of(expected),
                    ": choose columns with --columns, and name targets with --target");
  }
  throw DataError(flags.path,
                  "has samples ",
                  shape_of(in_file),
                  ", the model takes ",
                  shape_of(expected),
                  data.format == "PNG" ? ": scale the images to this size" : "");
}

/// Labels by the names of classes that the model knows, or else by `names`. Without either, the
/// data must have a name for each class, because a missing one would change the others' numbers.
void match_classes(const Model& model, const std::vector<std::string>& names, Data& data) {
  if (data.classes.empty()) return;
  const std::vector<std::string> own = model.classes();
  const std::vector<std::string>& known = own.empty() ? names : own;
  const int64_t count = model.outputs();
  if (!own.empty() && std::ssize(own) != count)
    throw DataError(
        model.path, "names ", own.size(), " classes and gives ", count, ": train it again");
  if (known.empty() && std::ssize(data.classes) != count) {
    const bool is_table = data.format == "csv";
    throw DataError(data.path,
                    "has ",
                    data.classes.size(),
                    is_table ? " words in its column of classes" : " folders",
                    ", the model gives ",
                    count,
                    count == 1 ? " output" : " classes",
                    is_table ? ": a number for each class also works"
                             : ": there must be a folder for each class; one folder of .png files "
                               "has no classes");
  }
  if (known.empty() || known == data.classes) return;
  std::vector<int32_t> index;
  for (const std::string& name : data.classes) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end()) {
      throw DataError(data.path,
                      "has a class \"",
                      name,
                      own.empty() ? "\", the training data have: " : "\", the model has: ",
                      joined(known));
    }
    index.push_back(static_cast<int32_t>(found - known.begin()));
  }
  for (int32_t& label : data.labels) label = index[static_cast<size_t>(label)];
  data.classes = known;
}

/// Each label is a class that the model knows.
void check_labels(const Model& model, const Data& data) {
  if (data.labels.empty()) return;
  const auto [least, most] = std::minmax_element(data.labels.begin(), data.labels.end());
  const int64_t classes = model.outputs();
  if (*least < 0 || *most >= classes)
    throw DataError(data.path,
                    "has labels from ",
                    *least,
                    " to ",
                    *most,
                    ", the model gives ",
                    classes,
                    classes == 1 ? " output" : " classes");
}

void keep(Data& data, int64_t count) {
  if (count == 0 || count >= data.size) return;
  const std::vector<int64_t> kept = spread(data.size, count);
  const auto pick = [&](auto& values) {
    if (values.empty()) return;
    const size_t width = values.size() / static_cast<size_t>(data.size);
    std::remove_reference_t<decltype(values)> some;
    for (const int64_t i : kept) {
      const auto first = values.begin() + i * static_cast<int64_t>(width);
      some.insert(some.end(), first, first + static_cast<int64_t>(width));
    }
    values = std::move(some);
  };
  pick(data.bytes);
  pick(data.floats);
  pick(data.labels);
  pick(data.targets);
  data.size = std::ssize(kept);
}

}  // namespace

void DataFlags::declare(CLI::App& line, bool required) {
  CLI::Option* const option =
      flag(line,
           "--data",
           path,
           "FILE",
           "samples: an IDX folder, a .npy, a .csv, a folder of .png files "
           "(one folder for each class), a .png, or raw bytes (.bin, .raw)");
  if (required) option->required();
  flag(line, "--split", split, "train|test", "part of an IDX folder");
  flag(line,
       "--target",
       target,
       "FILE",
       "what the model should give: columns of the .csv, a .npy or IDX file of labels or numbers, "
       "or \"input\" for an autoencoder");
  flag(
      line, "--columns", columns, "NAME,...", "columns of the .csv that are inputs, in this order");
  flag(line, "--layout", layout, "nhwc|nchw", "of a .npy; without it, the layout that fits");
  flag(line,
       "--range",
       range,
       "LOW,HIGH",
       "real values of bytes 0 and 255, or of the smallest and largest float (default for bytes: "
       "0,1)");
  flag(line, "--mean", mean, "NUMBER,...", "subtracted from values: one, or one for each channel");
  flag(line, "--deviation", deviation, "NUMBER,...", "the difference is divided by it");
  flag(line, "--samples", samples, 1, int64_t{1} << 40, "use N samples, spread over the data");
}

std::vector<int64_t> spread(int64_t n, int64_t count) {
  if (count == 0 || count > n) count = n;
  std::vector<int64_t> indices;
  const auto begin = [&](int64_t part) {
    return static_cast<int64_t>(static_cast<double>(part) * static_cast<double>(n) /
                                static_cast<double>(count));
  };
  // One at random of each part: rows at equal distances may be of one class.
  for (int64_t i = 0; i < count; ++i) {
    const int64_t size = begin(i + 1) - begin(i);
    const uint64_t number = SplitMix64::mix(static_cast<uint64_t>(i) * SplitMix64::kStep);
    indices.push_back(begin(i) + static_cast<int64_t>(number % static_cast<uint64_t>(size)));
  }
  return indices;
}

Data read_data(const DataFlags& flags,
               const Model& model,
               const std::vector<std::string>& classes) {
  if (model.inputs() != 1)
    throw DataError(model.path,
                    "has ",
                    model.inputs(),
                    " inputs; data are read for networks with one input: use the library's calls");
  Data data = read_files(flags, model);
  if (flags.target.empty()) data.target_is_input = model.gives_input;
  if (data.target_is_input) {  // classes of the samples say nothing about it
    data.labels.clear();
    data.classes.clear();
  }
  fit_shape(flags, model, data);
  if (data.target_is_input) {  // a network may give it as one row
    const Extents row{shape_of(data.shape).elements()};
    data.target_shape = model.outputs() == row[0] ? row : data.shape;
  }
  match_classes(model, classes, data);
  check_labels(model, data);
  keep(data, flags.samples);
  return data;
}

}  // namespace quantrain::tools
