#include "framework/io/safetensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <tuple>

#include "framework/core/error.hpp"
#include "framework/core/file.hpp"
#include "framework/core/text_stream.hpp"
#include "framework/io/json.hpp"
#include "framework/io/json_writer.hpp"

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian");

namespace quantrain {
namespace {

constexpr const char* kWhere = "safetensors";
constexpr const char* kMetadataKey = "__metadata__";
constexpr int64_t kLengthBytes = 8;
constexpr int64_t kMaxHeader = int64_t{16} << 20;
constexpr size_t kMaxName = 16384;  // limited, because messages quote names
constexpr int kMaxDepth = 4;
constexpr DType kAllDTypes[] = {DType::kF64,
                                DType::kF32,
                                DType::kF16,
                                DType::kBF16,
                                DType::kI64,
                                DType::kI32,
                                DType::kI8,
                                DType::kU8};

// Entries in the order of their data in the file: wide elements first, so that all are aligned.
std::vector<const TensorFile::Entry*> file_order(const TensorFile& file) {
  std::vector<const TensorFile::Entry*> order;
  for (const TensorFile::Entry& entry : file.entries()) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return dtype_size(a->dtype) > dtype_size(b->dtype);
  });
  return order;
}

// The fault in the bytes. The caller adds the path or name of their source.
struct Malformed {
  std::string text;
};

template <class... Parts>
[[noreturn]] void malformed(const Parts&... parts) {
  TextStream stream;
  (stream << ... << parts);
  throw Malformed{stream.str()};
}

constexpr int64_t kMostCount = std::numeric_limits<int64_t>::max();

int64_t to_integer(JsonValue json, std::string_view name, const char* key) {
  const std::optional<int64_t> count = json.integer(0, kMostCount);
  if (!count) malformed("\"", name, "\": ", key, " has ", json, " where a count is expected");
  return *count;
}

std::vector<int64_t> to_integers(JsonValue json, std::string_view name, const char* key) {
  if (!json.is_list()) malformed("\"", name, "\": ", key, " is not a list");
  std::vector<int64_t> integers;
  for (const JsonValue element : json.entries()) integers.push_back(to_integer(element, name, key));
  return integers;
}

struct Placed {
  int64_t begin, end;
  TensorFile::Entry entry;
};

// Parses one entry of the header and checks its range against the size of the data. Does not read
// the data.
Placed parse_entry(std::string_view name, JsonValue json, int64_t data_size) {
  if (name.size() > kMaxName) malformed("a name of ", name.size(), " bytes exceeds ", kMaxName);
  const std::optional<JsonValue> dtype_json = json.find("dtype");
  const std::optional<JsonValue> shape_json = json.find("shape");
  const std::optional<JsonValue> offsets_json = json.find("data_offsets");
  if (json.size() != 3 || !dtype_json || !shape_json || !offsets_json)
    malformed("\"", name, "\": needs dtype, shape and data_offsets, and nothing else");
  const auto* const dtype =
      std::find_if(std::begin(kAllDTypes), std::end(kAllDTypes), [&](DType d) {
        return dtype_json->text() == dtype_name(d);
      });
  if (dtype == std::end(kAllDTypes))
    malformed(
        "\"", name, "\": unsupported dtype ", *dtype_json, " (floats must be F32, F16 or BF16)");

  const std::vector<int64_t> offsets = to_integers(*offsets_json, name, "data_offsets");
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_size) {
    TextStream list;
    for (size_t i = 0; i < std::min<size_t>(offsets.size(), 3); ++i)
      list << (i > 0 ? ", " : "") << offsets[i];
    malformed("\"",
              name,
              "\": data_offsets [",
              list.str(),
              "] are not a range of the ",
              data_size,
              " bytes of data");
  }
  Shape shape;
  try {
    shape = Shape(to_integers(*shape_json, name, "shape"));
  } catch (const ShapeError& error) {
    malformed("\"", name, "\": ", error.what());
  }
  const int64_t bytes = offsets[1] - offsets[0];
  if (bytes % dtype_size(*dtype) != 0 || bytes / dtype_size(*dtype) != shape.elements()) {
    malformed("\"",
              name,
              "\": ",
              dtype_name(*dtype),
              " of shape ",
              shape,
              " does not match its ",
              bytes,
              " bytes");
  }
  return {offsets[0], offsets[1], {std::string(name), *dtype, shape, {}}};
}

// Fills the span with the next bytes. At the end of the file, fills only the start of the span.
// Returns the number of bytes read.
using Reader = std::function<size_t(std::span<uint8_t>)>;

JsonDocument parse_header(std::span<const uint8_t> header) {
  try {
    return JsonDocument({reinterpret_cast<const char*>(header.data()), header.size()},
                        {.bytes = kMaxHeader, .depth = kMaxDepth});
  } catch (const JsonDocument::Malformed& what) {
    malformed("the header ", what.text);
  }
}

// Reads the data only if the header accounts for every byte.
TensorFile parse(int64_t file_size, const Reader& read_some) {
  if (file_size < kLengthBytes) malformed("only ", file_size, " bytes, too short for any header");
  const auto read = [&](int64_t size) {
    std::vector<uint8_t> bytes(static_cast<size_t>(size));
    if (read_some(bytes) < bytes.size()) malformed("truncated while it was read");
    return bytes;
  };
  uint64_t header_size = 0;
  std::memcpy(&header_size, read(kLengthBytes).data(), sizeof header_size);
  if (header_size > uint64_t{kMaxHeader}) {
    malformed("is not a safetensors file, or is damaged: the header's length, ",
              header_size,
              ", exceeds ",
              kMaxHeader);
  }
  const int64_t data_size = file_size - kLengthBytes - static_cast<int64_t>(header_size);
  if (data_size < 0) {
    malformed("truncated: a header of ", header_size, " bytes in a file of ", file_size);
  }
  const std::vector<uint8_t> header = read(static_cast<int64_t>(header_size));
  if (header.empty() || header[0] != '{') malformed("the header does not begin with {");

  const JsonDocument document = parse_header(header);

  TensorFile result;
  std::vector<Placed> ranges;
  for (const auto& [name, value] : document.root().members()) {
    if (name != kMetadataKey) {
      ranges.push_back(parse_entry(name, value, data_size));
      continue;
    }
    if (!value.is_object()) malformed(kMetadataKey, " is not an object");
    for (const auto& [key, text] : value.members()) {
      if (!text.text()) malformed(kMetadataKey, " has a member that is not a string");
      result.metadata.emplace(key, *text.text());
    }
  }

  std::sort(ranges.begin(), ranges.end(), [](const Placed& a, const Placed& b) {
    return std::tie(a.begin, a.end, a.entry.name) < std::tie(b.begin, b.end, b.entry.name);
  });
  int64_t covered = 0;
  for (const Placed& range : ranges) {
    if (range.begin != covered) {
      malformed("\"",
                range.entry.name,
                "\": starts at byte ",
                range.begin,
                range.begin < covered ? " and overlaps data up to " : " and leaves a hole from ",
                covered);
    }
    covered = range.end;
  }
  if (covered != data_size) {
    malformed("entries cover ", covered, " of ", data_size, " bytes of data");
  }
  for (Placed& range : ranges) {
    range.entry.bytes = read(range.end - range.begin);
    result.add(std::move(range.entry));
  }
  return result;
}

}  // namespace

std::string_view dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "F64";
    case DType::kF32: return "F32";
    case DType::kF16: return "F16";
    case DType::kBF16: return "BF16";
    case DType::kI64: return "I64";
    case DType::kI32: return "I32";
    case DType::kI8: return "I8";
    case DType::kU8: return "U8";
  }
  return "unknown";
}

int64_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64: return 8;
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kI8:
    case DType::kU8: return 1;
  }
  return 1;
}

const TensorFile::Entry* TensorFile::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

const TensorFile::Entry& TensorFile::at(std::string_view name) const& {
  if (const Entry* entry = find(name)) return *entry;
  throw DataError(kWhere, "no entry \"", name, "\"");
}

const TensorFile::Entry& TensorFile::at(std::string_view name, DType dtype) const& {
  const Entry& entry = at(name);
  if (entry.dtype == dtype) return entry;
  throw DataError(
      kWhere, "\"", name, "\" is ", dtype_name(entry.dtype), ", expected ", dtype_name(dtype));
}

const std::string& TensorFile::metadata_at(const std::string& name) const& {
  const auto found = metadata.find(name);
  if (found == metadata.end()) throw DataError(kWhere, "the metadata have no \"", name, "\"");
  return found->second;
}

void TensorFile::add(Entry entry) {
  if (entry.name.size() > kMaxName)
    throw DataError(kWhere, "a name of ", entry.name.size(), " bytes exceeds ", kMaxName);
  if (entry.name == kMetadataKey) throw DataError(kWhere, "\"", entry.name, "\" is reserved");
  if (contains(entry.name)) throw DataError(kWhere, "two entries are named \"", entry.name, "\"");
  const auto bytes = static_cast<int64_t>(entry.bytes.size());
  if (bytes % dtype_size(entry.dtype) != 0 ||
      bytes / dtype_size(entry.dtype) != entry.shape.elements()) {
    throw DataError(kWhere,
                    "\"",
                    entry.name,
                    "\": ",
                    dtype_name(entry.dtype),
                    " of shape ",
                    entry.shape,
                    " does not match its ",
                    bytes,
                    " bytes");
  }
  entries_.push_back(std::move(entry));
  try {
    index_.emplace(entries_.back().name, entries_.size() - 1);
  } catch (...) {
    entries_.pop_back();
    throw;
  }
}

void save_safetensors(const std::string& path, const TensorFile& file) {
  JsonWriter json([&](const std::string& text) {
    return std::make_exception_ptr(
        DataError(kWhere, path, ": a name or text cannot be written as JSON: ", text));
  });
  std::vector<std::span<const uint8_t>> parts(2);
  int64_t offset = 0;
  const auto metadata = [&] {
    for (const auto& [name, text] : file.metadata) json.member(name, text);
  };
  const auto write_entry = [&](const TensorFile::Entry& entry) {
    const int64_t end = offset + static_cast<int64_t>(entry.bytes.size());
    json.object([&] {
      json.member("dtype", dtype_name(entry.dtype));
      json.member("shape", entry.shape);
      json.member("data_offsets", std::array{offset, end});
    });
    parts.emplace_back(entry.bytes);
    offset = end;
  };
  json.object([&] {
    if (!file.metadata.empty()) json.member(kMetadataKey, [&] { json.object(metadata); });
    for (const TensorFile::Entry* entry : file_order(file))
      json.member(entry->name, [&] { write_entry(*entry); });
  });
  std::string header = std::move(json).text();
  header.resize((header.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
  if (static_cast<int64_t>(header.size()) > kMaxHeader) {
    throw DataError(kWhere, path, ": a header of ", header.size(), " bytes exceeds ", kMaxHeader);
  }
  const std::span header_bytes(reinterpret_cast<const uint8_t*>(header.data()), header.size());
  try {
    parse_header(header_bytes);  // what is saved can be loaded
  } catch (const Malformed& what) {
    throw DataError(kWhere, path, ": ", what.text);
  }
  const uint64_t header_size = header.size();
  parts[0] = {reinterpret_cast<const uint8_t*>(&header_size), sizeof header_size};
  parts[1] = header_bytes;
  write_file(path, parts);
}

TensorFile load_safetensors(const std::string& path) {
  InputFile file(path);
  try {
    return parse(file.left(), [&](std::span<uint8_t> out) { return file.read(out); });
  } catch (const Malformed& what) {
    throw DataError(kWhere, path, ": ", what.text);
  }
}

TensorFile parse_safetensors(std::span<const uint8_t> bytes, std::string_view where) {
  std::span<const uint8_t> left = bytes;
  try {
    return parse(static_cast<int64_t>(bytes.size()), [&](std::span<uint8_t> out) {
      const size_t count = std::min(out.size(), left.size());
      std::copy_n(left.begin(), count, out.begin());
      left = left.subspan(count);
      return count;
    });
  } catch (const Malformed& what) {
    throw DataError(kWhere, where, ": ", what.text);
  }
}

}  // namespace quantrain
