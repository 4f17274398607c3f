#include "tools/data_files.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/path.hpp"
#include "framework/data/csv.hpp"
#include "framework/data/idx.hpp"
#include "framework/data/image_folder.hpp"
#include "framework/data/npy.hpp"
#include "tools/command.hpp"
#include "tools/flags.hpp"

namespace quantrain::tools {
namespace {

namespace fs = std::filesystem;
using Extents = std::vector<int64_t>;

/// The path, plain or gzipped.
std::string plain_or_gz(const fs::path& path) {
  std::string plain = to_text(path);
  std::string packed = plain + ".gz";
  return exists(plain) || !exists(packed) ? plain : packed;
}

bool is_idx_folder(const fs::path& folder) {
  for (const char* const name : {"t10k-images-idx3-ubyte", "train-images-idx3-ubyte"}) {
    if (exists(plain_or_gz(folder / name))) return true;
  }
  return false;
}

Data read_idx(const DataFlags& flags) {
  const std::string prefix = flags.split == "train" ? "train" : "t10k";
  const fs::path folder = to_path(flags.path);
  IdxArray images = read_idx_u8(plain_or_gz(folder / (prefix + "-images-idx3-ubyte")));
  const IdxArray labels = read_idx_u8(plain_or_gz(folder / (prefix + "-labels-idx1-ubyte")));
  if (images.shape.rank() < 2 || labels.shape.rank() != 1 || labels.shape[0] != images.shape[0])
    throw DataError(flags.path, "images ", images.shape, " and labels ", labels.shape, " differ");
  Data data{.format = "IDX", .size = images.shape[0], .bytes = std::move(images.bytes)};
  data.shape.assign(images.shape.begin() + 1, images.shape.end());
  data.labels.assign(labels.bytes.begin(), labels.bytes.end());
  return data;
}

int64_t channels_of(const Extents& expected) {
  return expected.size() == 2 || (expected.size() == 3 && expected.back() == 1) ? 1 : 3;
}

/// PNG files without classes: one, or those of a folder.
Data read_pngs(const std::string& path, const std::vector<std::string>& files, int64_t channels) {
  Data data{.format = "PNG"};
  for (const std::string& file : files) {
    const Image image = read_png(file, channels);
    const Extents shape(image.shape.begin(), image.shape.end());
    if (data.size == 0) data.shape = shape;
    if (shape != data.shape)
      throw DataError(path, file, " is ", image.shape, ", the first image ", shape_of(data.shape));
    data.bytes.insert(data.bytes.end(), image.bytes.begin(), image.bytes.end());
    ++data.size;
  }
  return data;
}

Data read_images(const std::string& path, const Extents& expected) {
  const int64_t channels = channels_of(expected);
  if (!is_folder(path)) return read_pngs(path, {path}, channels);
  std::vector<std::string> files;
  bool has_folders = false;
  for (const std::string& name : names_in(path)) {
    const fs::path entry = to_path(path) / to_path(name);
    if (name[0] != '.' && is_folder(to_text(entry))) has_folders = true;
    if (entry.extension() == ".png") files.push_back(to_text(entry));
  }
  if (!has_folders && !files.empty()) return read_pngs(path, files, channels);
  if (!has_folders)
    throw DataError(path,
                    "holds neither IDX files (train-images-idx3-ubyte, t10k-images-idx3-ubyte, "
                    "...) nor .png files, nor a folder of .png files for each class");
  const ImageFolder folder = read_image_folder(path, {.channels = channels});
  const Shape& image = folder.images.image_shape();
  Data data{.format = "PNG",
            .shape = Extents(image.begin(), image.end()),
            .size = folder.images.size(),
            .labels = folder.images.labels(),
            .classes = folder.classes};
  for (int64_t i = 0; i < data.size; ++i) {
    const auto bytes = folder.images.image(i);
    data.bytes.insert(data.bytes.end(), bytes.begin(), bytes.end());
  }
  return data;
}

/// Throws: DataError if samples have an axis without elements.
void check_filled(const std::string& path, const Shape& shape) {
  if (shape.rank() > 0 && std::find(shape.begin() + 1, shape.end(), 0) != shape.end())
    throw DataError(path, "has shape ", shape, ", whose samples hold nothing");
}

Data read_array(const std::string& path) {
  NpyArray array = read_npy(path);
  if (array.shape.rank() < 1) throw DataError(path, "holds one number, expected samples [N, ...]");
  check_filled(path, array.shape);
  Data data{.format = "npy", .size = array.shape[0]};
  data.shape.assign(array.shape.begin() + 1, array.shape.end());
  if (array.type == NpyType::kU8) {
    data.bytes = std::move(array).take_bytes();
  } else {
    data.floats = array.floats();
    data.is_int8 = array.type == NpyType::kI8;
  }
  return data;
}

Data read_bytes(const std::string& path, const Extents& expected) {
  if (expected.empty())
    throw DataError(path, "holds bytes, and the model does not say the shape of a sample");
  InputFile file(path);
  const int64_t sample = shape_of(expected).elements();
  if (file.left() == 0 || file.left() % sample != 0)
    throw DataError(path,
                    "has ",
                    file.left(),
                    " bytes, which are no whole samples ",
                    shape_of(expected),
                    " of ",
                    sample,
                    " bytes");
  Data data{.format = "bytes", .shape = expected, .size = file.left() / sample};
  data.bytes.resize(static_cast<size_t>(file.left()));
  file.read(data.bytes);
  return data;
}

/// Whether a column names classes: it holds words, or whole numbers for a model of several outputs.
bool names_classes(const CsvTable& table, const std::string& column, int64_t outputs) {
  bool whole = true;
  for (int64_t row = 0; row < table.rows(); ++row) {
    const std::string_view text = table.text(row, column);
    if (text.find_first_not_of("0123456789.+-eE") != std::string_view::npos) return true;
    whole = whole && text.find_first_not_of("0123456789") == std::string_view::npos;
  }
  return whole && outputs > 1;
}

void set_labels(const CsvTable& table, const std::string& column, Data& data) {
  bool whole = true;
  for (int64_t row = 0; row < table.rows(); ++row)
    whole = whole && table.text(row, column).find_first_not_of("0123456789") == std::string::npos;
  if (whole) {
    data.labels = table.labels(column);
    return;
  }
  TextClasses classes = table.classes(column);
  data.labels = std::move(classes.labels);
  data.classes = std::move(classes.names);
}

Data read_table(const DataFlags& flags, const Model& model) {
  const CsvTable table = read_csv(flags.path);
  std::vector<std::string> targets =
      flags.target == "input" &&
              std::find(table.columns().begin(), table.columns().end(), "input") ==
                  table.columns().end()
          ? std::vector<std::string>{}
          : parts(flags.target, ',');
  for (const std::string& target : targets) table.text(0, target);  // throws if there is none
  std::vector<std::string> columns = parts(flags.columns, ',');
  const std::vector<std::string> of_model = model.columns();
  if (!columns.empty() && !of_model.empty() && columns != of_model)
    throw DataError(model.path,
                    "was made for the columns ",
                    joined(of_model),
                    ", and --columns says ",
                    flags.columns,
                    ": leave --columns away");
  if (columns.empty()) columns = of_model;
  if (columns.empty()) {
    for (const std::string& column : table.columns()) {
      if (std::find(targets.begin(), targets.end(), column) == targets.end())
        columns.push_back(column);
    }
  }
  Data data{.format = "csv",
            .shape = {std::ssize(columns)},
            .size = table.rows(),
            .floats = table.floats(columns),
            .columns = columns};
  if (targets.empty()) {
    data.target_is_input = flags.target == "input";
    return data;
  }
  if (targets.size() == 1 && names_classes(table, targets[0], model.outputs())) {
    set_labels(table, targets[0], data);
  } else {
    data.targets = table.floats(targets);
    data.target_shape = {std::ssize(targets)};
  }
  return data;
}

/// Targets from a file of their own.
void read_targets(const std::string& path, Data& data) {
  if (path == "input") {
    data.target_is_input = true;
    return;
  }
  if (!exists(path)) throw DataError(path, "does not exist");
  const std::string extension = to_text(to_path(path).extension());
  const bool is_npy = extension == ".npy";
  if (!is_npy) {
    const bool may_be_idx =
        extension.empty() || extension == ".gz" || extension.rfind(".idx", 0) == 0;
    if (!may_be_idx)
      throw DataError(path,
                      "holds no targets that are read: save a .npy or an IDX file, or put them "
                      "into a column of a .csv with the inputs");
    const IdxArray labels = read_idx_u8(path);
    data.labels.assign(labels.bytes.begin(), labels.bytes.end());
  } else {
    const NpyArray array = read_npy(path);
    const bool integers = array.type != NpyType::kF32 && array.type != NpyType::kF64;
    if (array.shape.rank() < 1) throw DataError(path, "holds one number");
    check_filled(path, array.shape);
    if (integers && array.shape.rank() == 1) {
      data.labels = array.labels();
    } else {
      data.targets = array.floats();
      data.target_shape.assign(array.shape.begin() + 1, array.shape.end());
      if (data.target_shape.empty()) data.target_shape = {1};
    }
  }
  const int64_t count = data.labels.empty() && data.size > 0 && !data.target_shape.empty()
                            ? std::ssize(data.targets) / shape_of(data.target_shape).elements()
                            : std::ssize(data.labels);
  if (count != data.size)
    throw DataError(path, "has ", count, " targets for ", data.size, " samples of ", data.path);
}

}  // namespace

Shape shape_of(const std::vector<int64_t>& extents) {
  return Shape(std::span<const int64_t>(extents));
}

Data read_files(const DataFlags& flags, const Model& model) {
  if (flags.path.empty()) throw WrongCall("--data", "is missing");
  if (!exists(flags.path)) throw DataError(flags.path, "does not exist");
  const fs::path extension = to_path(flags.path).extension();
  const bool has_files = is_folder(flags.path);
  const bool is_idx = has_files && is_idx_folder(to_path(flags.path));
  const Extents expected = model.input_shape();
  if (!flags.split.empty() && !is_idx) throw WrongCall("--split", "is only for IDX folders");
  if (!flags.layout.empty() && extension != ".npy")
    throw WrongCall("--layout", "is only for .npy files");
  if (!flags.columns.empty() && extension != ".csv")
    throw WrongCall("--columns", "is only for .csv files");
  const bool is_known = has_files || extension == ".png" || extension == ".npy" ||
                        extension == ".csv" || extension == ".bin" || extension == ".raw";
  if (!is_known)
    throw DataError(flags.path,
                    "is none of the data that are read: a folder of IDX or .png files, .npy, .csv, "
                    ".png, or raw bytes, named .bin or .raw");
  Data data = is_idx                             ? read_idx(flags)
              : has_files || extension == ".png" ? read_images(flags.path, expected)
              : extension == ".npy"              ? read_array(flags.path)
              : extension == ".csv"              ? read_table(flags, model)
                                                 : read_bytes(flags.path, expected);
  data.path = flags.path;
  if (data.size == 0) throw DataError(flags.path, "holds no samples");
  if (!flags.target.empty() && data.format != "csv") {
    if (!data.labels.empty() && flags.target != "input")
      throw WrongCall("--target", "the labels of ", flags.path, " are known already");
    read_targets(flags.target, data);
  }
  return data;
}

}  // namespace quantrain::tools
