// |got - want| <= bound, element by element. A bound of 0 demands the bits. Where the bound says nothing, since the
// exact number is not what floats can compute (a mask swallows a score, an exponential overflows), the number must be
// what the kernel's own type makes of it.
#include "proof/judge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tensor/number.hpp"

namespace opfuse {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kClose = 0x1p-12;    ///< of the largest: right, however wide the bound is
constexpr double kDoubles = 0x1p-50;  ///< of the largest element: what doubles keep of terms that cancel

/// The last launch that wrote an element; null: none did, and nothing excuses it.
const BoundedTensor* writer_of(const std::vector<const BoundedTensor*>& bounds, size_t i) {
  const BoundedTensor* writer = nullptr;
  for (const BoundedTensor* b : bounds)
    if (b->written[i]) writer = b;
  return writer;
}

double number(const BoundedTensor& b, size_t i) {
  return is_float(b.dtype) ? b.value[i] : static_cast<double>(b.integer[i]);
}

/// Kernels may flush what is smaller than any normal number they compute with, halves in f32.
double smallest_normal(DType dtype) {
  return dtype == DType::f64 ? std::numeric_limits<double>::min()
         : is_float(dtype)   ? std::numeric_limits<float>::min()
                             : 0;
}

double largest_of(const Tensor& t) {
  double largest = 0;
  for (int64_t i = 0, n = t.elements(); i < n; ++i)
    if (const double v = std::fabs(t.real(i)); std::isfinite(v)) largest = std::max(largest, v);
  return largest;
}

struct Judged {
  double got = 0, want = 0, bound = 0;
  double region = std::numeric_limits<double>::quiet_NaN();  ///< what the writer's region says, and how far from it
  double reach = 0;                                          ///< a kernel may be
  bool exact = true, tie = false, unclaimed = false;

  /// An error that no tie is part of is one of kernel and definition together. Where a step may have gone the other
  /// way, both lie between its ends, `low` and `high`, and the kernel's number is as far off as the end on its side.
  void use(const BoundedTensor& writer, size_t at) {
    const Reach e = writer.error.empty() ? Reach() : writer.error[at];
    const double v = number(writer, at);
    exact = e.none();
    tie = !exact && writer.tie[at];
    bound = e.most();
    region = v, reach = std::isinf(bound) ? 0 : bound;
    unclaimed = std::isinf(bound) || (!std::isfinite(v) && std::isfinite(want));
    if (tie && !unclaimed) bound = std::max(0.0, got > want ? v + e.above - want : want - (v - e.below));
  }

  bool same(DType dtype) const {
    if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
    return got == want || (is_float(dtype) && got == round_to(dtype, want));
  }
  /// Terms that cancel leave a rest in the definition's doubles, which is small beside other elements only. Where
  /// region and definition are that close, the kernel is judged by the region.
  bool cancels(DType dtype, double rest) const {
    if (!(std::fabs(region - want) <= rest)) return false;
    return (!tie && std::fabs(got - region) <= reach) || got == region ||
           (is_float(dtype) && got == round_to(dtype, region));
  }
  Judged by_region() const {
    Judged e = *this;
    e.want = region, e.bound = reach;
    return e;
  }
  double of_bound() const {
    const double off = std::fabs(got - want);
    return std::isnan(off) || !(bound > 0) ? kInfinity : off / bound;
  }
  /// Beside the largest number; behind sums that swallow an addend, beside the element itself: all of a row's
  /// logarithms are small beside those of its masked keys.
  bool is_vague(double largest) const {
    if (unclaimed) return true;
    return !exact && !tie && bound > kVague * largest && !(std::fabs(got - want) <= kClose * largest);
  }
};

class Judge {
 public:
  Judge(const Tensor& got, const Tensor& want, const std::vector<const BoundedTensor*>& bounds, double oracle,
        const TypedParts& typed)
      : got_(got), want_(want), bounds_(bounds), oracle_(oracle), typed_(typed), largest_(largest_of(want)) {
    for (const BoundedTensor* part : bounds) swallows_ = swallows_ || part->swallows;
  }

  Proof run() {
    proof_.elements = got_.elements();
    for (int64_t i = 0; i < proof_.elements; ++i) judge(i);
    return proof_;
  }

 private:
  const Tensor &got_, &want_;
  const std::vector<const BoundedTensor*>& bounds_;
  double oracle_;
  const TypedParts& typed_;
  double largest_;
  bool swallows_ = false;
  std::vector<const BoundedTensor*> parts_;  ///< under ErrorModel::typed
  double largest_typed_ = 0;
  Proof proof_;

  void judge(int64_t i) {
    const auto at = static_cast<size_t>(i);
    Judged e{got_.real(i), want_.real(i)};
    if (const BoundedTensor* writer = writer_of(bounds_, at)) e.use(*writer, at);
    if (e.exact) ++proof_.exact;
    if (std::isfinite(e.want)) e.bound += oracle_ * std::fabs(e.want);
    if (!e.exact) e.bound += kDoubles * largest_;
    if (oracle_ > 0) e.bound += smallest_normal(got_.dtype());
    if (e.same(got_.dtype())) {
      proof_.typed += std::isinf(e.got) && std::isfinite(e.want);
      return;
    }
    if (e.is_vague(swallows_ ? std::fabs(e.want) : largest_)) {
      const std::optional<Judged> own = swallows_ || e.unclaimed ? by_type(at) : std::nullopt;
      if (own) return judge_by_type(*own, i);
      if (e.unclaimed) return void(++proof_.unclaimed);
      if (e.is_vague(largest_) && e.of_bound() <= 1) return void(++proof_.vague);
    }
    if (!e.cancels(got_.dtype(), oracle_ * largest_)) return measure(e, i);
    if (!e.tie && e.reach > 0) measure(e.by_region(), i);
  }

  /// Nothing where the type has no bound either, or says infinity or NaN, and the kernel something else.
  std::optional<Judged> by_type(size_t at) {
    if (!typed_) return std::nullopt;
    if (parts_.empty()) parts_ = typed_(), largest_typed_ = std::max(largest_, largest_of(values_of(parts_)));
    const BoundedTensor* writer = writer_of(parts_, at);
    if (!writer) return std::nullopt;
    Judged own{got_.real(static_cast<int64_t>(at)), number(*writer, at)};
    own.use(*writer, at);
    own.bound += smallest_normal(got_.dtype());
    if (own.same(got_.dtype())) return own;
    if (own.unclaimed || !std::isfinite(own.want) || own.is_vague(largest_typed_)) return std::nullopt;
    return own;
  }

  void judge_by_type(const Judged& own, int64_t i) {
    if (own.same(got_.dtype()) || own.of_bound() <= 1)
      ++proof_.typed;
    else
      measure(own, i);
  }

  void measure(const Judged& e, int64_t i) {
    const double share = e.of_bound();
    if (share > 1) ++proof_.outside;
    if (share <= 1 && e.tie) ++proof_.ties;
    if (share > proof_.of_bound)
      proof_.of_bound = share, proof_.got = e.got, proof_.want = e.want, proof_.bound = e.bound, proof_.at = i;
  }
};

}  // namespace

void Proof::merge(const Proof& other) {
  const bool worse = other.of_bound > of_bound || at < 0;
  elements += other.elements, exact += other.exact, outside += other.outside, unclaimed += other.unclaimed;
  vague += other.vague, typed += other.typed, ties += other.ties;
  worst_case = std::max(worst_case, other.worst_case);
  if (!worse) return;
  of_bound = other.of_bound, got = other.got, want = other.want, bound = other.bound, at = other.at;
}

Proof judge(const Tensor& got, const Tensor& want, const std::vector<const BoundedTensor*>& bounds, double oracle,
            const TypedParts& typed) {
  return Judge(got, want, bounds, oracle, typed).run();
}

double distance_of(const Tensor& got, const Tensor& want) {
  double sum = 0, norm = 0;
  for (int64_t i = 0, n = got.elements(); i < n; ++i) {
    const double d = got.real(i) - want.real(i);
    if (!std::isfinite(d)) continue;
    sum += d * d, norm += want.real(i) * want.real(i);
  }
  return norm > 0 ? std::sqrt(sum / norm) : 0;
}

BoundedTensor merged(const std::vector<const BoundedTensor*>& bounds) {
  BoundedTensor all = *bounds.front();
  for (size_t b = 1; b < bounds.size(); ++b)
    for (size_t i = 0; i < all.written.size(); ++i) {
      if (!bounds[b]->written[i]) continue;
      if (is_float(all.dtype))
        all.value[i] = bounds[b]->value[i];
      else
        all.integer[i] = bounds[b]->integer[i];
      all.error[i] = bounds[b]->error[i], all.tie[i] = bounds[b]->tie[i], all.written[i] = 1;
    }
  return all;
}

Tensor values_of(const std::vector<const BoundedTensor*>& bounds) {
  const BoundedTensor& first = *bounds.front();
  Tensor t(is_float(first.dtype) ? DType::f64 : first.dtype, first.sizes);
  for (int64_t i = 0, n = t.elements(); i < n; ++i) {
    const BoundedTensor* writer = writer_of(bounds, static_cast<size_t>(i));
    if (!writer) continue;
    if (is_float(first.dtype))
      t.set_real(i, writer->value[static_cast<size_t>(i)]);
    else
      t.set_integer(i, writer->integer[static_cast<size_t>(i)]);
  }
  return t;
}

}  // namespace opfuse
