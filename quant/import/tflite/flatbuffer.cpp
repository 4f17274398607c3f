#include "quant/import/tflite/flatbuffer.hpp"

#include <bit>

#include "framework/core/error.hpp"

namespace quantrain::tflite {

static_assert(std::endian::native == std::endian::little, "the file's numbers are little endian");

Flatbuffer::Flatbuffer(std::span<const uint8_t> bytes,
                       std::string_view letters,
                       std::string_view where)
    : bytes_(bytes), where_(where) {
  if (size() < 8 || std::memcmp(bytes.data() + 4, letters.data(), 4) != 0)
    throw DataError(where, "is no .tflite file: bytes 4 to 7 are not \"", letters, "\"");
}

const uint8_t* Flatbuffer::at(int64_t position, int64_t size) const {
  if (position < 0 || position > this->size() || size > this->size() - position) {
    throw DataError(where_,
                    "is damaged: ",
                    size,
                    " bytes from byte ",
                    position,
                    " on are wanted, but the file has ",
                    this->size());
  }
  return bytes_.data() + position;
}

Table Flatbuffer::root() const { return Table(*this, number<uint32_t>(0)); }

Table::Table(const Flatbuffer& file, int64_t position)
    : file_(&file),
      position_(position),
      fields_(position - int64_t{file.number<int32_t>(position)}) {
  const int64_t list = file.number<uint16_t>(fields_);
  bytes_ = file.number<uint16_t>(fields_ + 2);
  field_count_ = (list - 4) / 2;
  if (list < 4 || bytes_ < 4) {
    throw DataError(
        file.where(), "is damaged: the table at byte ", position, " has no fields list");
  }
  file.at(fields_, list);
  file.at(position, bytes_);
}

const uint8_t* Table::find(int field, int64_t size) const {
  if (field >= field_count_) return nullptr;
  const int64_t offset = file_->number<uint16_t>(fields_ + 4 + 2 * field);
  if (offset == 0) return nullptr;
  if (offset < 4 || offset + size > bytes_) {
    throw DataError(file_->where(),
                    "is damaged: field ",
                    field,
                    " of the table at byte ",
                    position_,
                    " lies outside of the table");
  }
  return file_->at(position_ + offset, size);
}

const uint8_t* Table::find_vector(int field, int64_t size, int64_t* count) const {
  const uint8_t* const at = find(field, 4);
  if (at == nullptr) return nullptr;
  const int64_t from = file_->position(at);
  const int64_t begin = from + file_->number<uint32_t>(from);
  *count = file_->number<uint32_t>(begin);
  return file_->at(begin + 4, *count * size);
}

std::string_view Table::text(int field) const {
  const Vector<uint8_t> text = vector<uint8_t>(field);
  return {reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()};
}

Table Table::table(int field) const {
  const uint8_t* const at = find(field, 4);
  if (at == nullptr) return {};
  const int64_t from = file_->position(at);
  return {*file_, from + file_->number<uint32_t>(from)};
}

Table Table::table(int field, int64_t i) const {
  const Vector<uint32_t> offsets = vector<uint32_t>(field);
  if (i < 0 || i >= offsets.size()) {
    throw DataError(file_ == nullptr ? std::string_view("tflite") : file_->where(),
                    "is damaged: entry ",
                    i,
                    " of ",
                    offsets.size(),
                    " is wanted");
  }
  const int64_t from = file_->position(offsets.bytes().data()) + 4 * i;
  return {*file_, from + offsets[i]};
}

}  // namespace quantrain::tflite
