#include "framework/integer/channels.hpp"

namespace quantrain::integer {

Interval all_of(const Channels& channels) {
  Interval all = channels[0];
  for (const Interval& channel : channels) all = all.joined(channel);
  return all;
}

Channels over(const Channels& channels, int64_t count) {
  const auto size = static_cast<int64_t>(channels.size());
  if (size == count) return channels;
  Channels result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(count % size == 0 ? channels[static_cast<size_t>(i % size)]
                                       : all_of(channels));
  return result;
}

Interval product_of(int64_t w, const Interval& x, int32_t zero) {
  const int64_t a = w * (x.lo - zero);
  const int64_t b = w * (x.hi - zero);
  return {std::min(a, b), std::max(a, b)};
}

int64_t without_dead(const std::vector<bool>& dead, int64_t elements) {
  const int64_t removed = std::count(dead.begin(), dead.end(), true);
  if (removed == 0) return elements;
  const auto size = static_cast<int64_t>(dead.size());
  return elements / size * (size - removed);
}

}  // namespace quantrain::integer
