// y = max(x, 0) + g(|x|) with one polynomial of degree 5 in a = |x| for each of 16 intervals. No division, no
// exponential.
//
// SiLU, g(a) = -a / (1 + e^a): four intervals to the octave of a + 3/2; the exponent and two bits of that sum are the
// number of the interval. 16 operations, of which 5 are multiply-adds, instead of 18 with 10, and half of their
// latency.
//
// GELU, g(a) = -a P(-a), P the normal distribution: equal intervals around n h, n found by rounding a / h. 15
// operations, of which 6 are multiply-adds, instead of 20 with 10. Its approximation by tanh is the same with
// g(a) = -a / (1 + exp(2 sqrt(2/pi) (a + 0.044715 a^3))). With another constant than sqrt(1/2), argument and result are
// scaled: x P(s x) = GELU(s x) / s.
//
// Coefficients by Lawson's iteration, highest power first; each is rounded before those below it are fitted. SiLU's g
// is met within 7e-8, in the first interval within 1e-7 of its value. GELU's intervals are narrow enough to spare some
// of that: of the polynomials within 6e-8 of g those with small coefficients round least. The arithmetic adds up to
// 3e-7.
#include "cpu/emit/math/activation_tables.hpp"

#include <llvm/IR/IntrinsicsX86.h>

#include "base/fail.hpp"
#include "cpu/emit/math/exp_parts.hpp"
#include "cpu/emit/table.hpp"

namespace opfuse::cpu {
namespace {

/// Highest power first; by interval number mod 16.
using Polynomials = std::array<Table, 6>;

constexpr double kSiluStart = 1.5;
constexpr float kSiluEnd = 22.4999981F;  // with kSiluStart below the 17th interval
constexpr int kIntervalBits = 21;        // below them: what is left of the mantissa

constexpr Polynomials kSilu = {{
    // the first is number 14
    {0.0054111057f, 0.00322676753f, 0.000312793971f, -0.00100655889f, -0.000899901905f, -0.000265967188f,
     -3.03152665e-05f, 1.46193379e-05f, 1.11547761e-05f, 2.86921318e-06f, 5.66713254e-07f, 1.00688354e-07f,
     7.6377038e-09f, 1.90162469e-10f, 0.00128282153f, 0.00408725673f},
    {-0.0275238678f, -0.0159971956f, 0.00563148782f, 0.0184729919f, 0.0166922845f, 0.00574099738f, 0.000570510689f,
     -0.000628384238f, -0.000499364629f, -0.000153958536f, -3.58684993e-05f, -7.36086668e-06f, -6.72048373e-07f,
     -2.05134274e-08f, -0.0211117323f, -0.0243508853f},
    {0.00472236192f, -0.0198270828f, -0.0844444111f, -0.134599015f, -0.123297237f, -0.0472867787f, -0.0017915623f,
     0.0110211764f, 0.00911872741f, 0.00334194605f, 0.00091481139f, 0.000216379281f, 2.37124605e-05f, 8.86519899e-07f,
     2.47262014e-05f, 0.00164109305f},
    {0.248053238f, 0.274407208f, 0.371536434f, 0.469803184f, 0.435100347f, 0.170130163f, -0.0305592883f, -0.0991244316f,
     -0.0852114633f, -0.036757227f, -0.0117664104f, -0.00319943903f, -0.000419556047f, -1.91904164e-05f, 0.249999225f,
     0.24956806f},
    {-0.499562919f, -0.513808906f, -0.587258875f, -0.68385154f, -0.631779015f, -0.167868674f, 0.275987327f,
     0.459723234f, 0.409183234f, 0.205342755f, 0.076429151f, 0.0238167383f, 0.003724423f, 0.000208131474f, -0.5f,
     -0.499939561f},
    {-4.13366106e-05f, 0.0030578f, 0.0254082568f, 0.0635186359f, 0.032782875f, -0.293543816f, -0.687307358f,
     -0.884563684f, -0.811525583f, -0.467440844f, -0.200901717f, -0.0714782327f, -0.0132778101f, -0.000905034889f, 0.0f,
     -3.50176424e-06f},
}};

constexpr double kGeluWidth = 0.37;
constexpr float kGeluEnd = 5.73F;  // below 15.5 widths

constexpr Polynomials kGelu = {
    {{0.00456860662f, 0.0187733788f, 0.0227754526f, 0.0121677127f, -0.00160513143f, -0.00862679724f, -0.00511040865f,
      -0.00097807392f, -0.000940904603f, -0.000396968448f, -0.000261559209f, -9.09332084e-05f, 0.0f, 0.0f, 0.0f, 0.0f},
     {-0.0672261566f, -0.0819382221f, -0.0902815238f, -0.0399854332f, 0.0479491167f, 0.104504026f, 0.0655883551f,
      0.0115757119f, 0.00993326958f, 0.00341197057f, 0.00316362944f, 0.00116279675f, -0.000156867914f, -2.05103424e-06f,
      8.15282647e-07f, -9.66203295e-09f},
     {4.84496741e-05f, 0.00682162447f, 0.0133368764f, -0.0827235729f, -0.30828163f, -0.490915477f, -0.319005191f,
      -0.0381157808f, -0.0234118477f, 0.00475943182f, -0.00843417924f, -0.00298729911f, 0.00303525408f, 9.92749119e-05f,
      -8.91776017e-06f, 2.64063136e-08f},
     {0.398941159f, 0.397266328f, 0.395052254f, 0.487386018f, 0.77793932f, 1.07355165f, 0.694535911f, -0.0326331034f,
      -0.0871542096f, -0.135059252f, -0.0362371132f, -0.0185231399f, -0.0220624059f, -0.00118970871f, -5.42394332e-07f,
      3.28477626e-07f},
     {-0.5f, -0.499784648f, -0.499540031f, -0.544182599f, -0.732130706f, -0.971974194f, -0.554828465f, 0.382994801f,
      0.475263864f, 0.486023843f, 0.22012265f, 0.110797733f, 0.0714166388f, 0.00548487948f, 0.000273277867f,
      1.01799071e-06f},
     {0.0f, -1.12573516e-05f, 2.03494938e-06f, 0.00868262537f, 0.057518851f, 0.135558411f, -0.0478264242f,
      -0.530156434f, -0.589288533f, -0.554996014f, -0.303089678f, -0.160320595f, -0.0868883207f, -0.00881056953f,
      -0.000749087776f, -1.11978779e-05f}}};

constexpr Polynomials kGeluTanh = {
    {{0.0046719825f, 0.019117778f, 0.022791233f, 0.011712097f, 0.001118456f, -0.004594673f, -0.0028199237f,
      -0.00074565096f, -0.00094827666f, -0.0006077083f, -0.00024115821f, -5.5801847e-05f, 2.4065307e-06f,
      -2.5106633e-08f, -2.111856e-09f, -1.4306364e-10f},
     {-0.06757181f, -0.08250627f, -0.08982735f, -0.037483864f, 0.027028145f, 0.0668406f, 0.04063613f, 0.009153462f,
      0.010303124f, 0.0068759886f, 0.0029535464f, 0.00075828f, -1.5318767e-05f, 7.3093878e-09f, 1.7112278e-10f,
      4.5057236e-11f},
     {4.953607e-05f, 0.0069136587f, 0.012147478f, -0.08745973f, -0.2440885f, -0.3512055f, -0.21112789f, -0.028516384f,
      -0.026617555f, -0.017673485f, -0.008095205f, -0.0023146337f, -4.4953173e-05f, 4.9262724e-07f, 4.7376055e-08f,
      3.6603198e-09f},
     {0.39894113f, 0.39724612f, 0.39584038f, 0.4912282f, 0.6805068f, 0.81674856f, 0.4627922f, -0.050980866f,
      -0.07666315f, -0.063540794f, -0.032840945f, -0.010048283f, 0.00018937654f, 3.0617857e-06f, 3.350971e-07f,
      2.6090829e-08f},
     {-0.5f, -0.4997823f, -0.49979395f, -0.5457381f, -0.65940195f, -0.7377543f, -0.30627027f, 0.40108088f, 0.46155095f,
      0.37344894f, 0.20420991f, 0.06913162f, 0.001704674f, 6.222928e-06f, 7.9795916e-07f, 6.1004116e-08f},
     {0.0f, -1.1368654e-05f, 3.4552304e-05f, 0.008933407f, 0.03600959f, 0.050335947f, -0.15494853f, -0.5383272f,
      -0.5837697f, -0.4842103f, -0.28252298f, -0.10466621f, -0.005573723f, -9.564582e-05f, -1.202086e-05f,
      -1.0611859e-06f}}};

/// min(|x|, end), end where x is NaN: one instruction.
Real bounded_magnitude(Real x, float end) {
  constexpr int kSmallerMagnitude = 2, kWithoutSign = 2 << 2, kCurrentRounding = 4;
  auto& b = x.k->b;
  return x.with(b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_range_ps_512, {},
                                  {x.v, x.of(end).v, b.getInt32(kSmallerMagnitude | kWithoutSign),
                                   x.k->zero(x.v->getType()), b.getInt16(-1), b.getInt32(kCurrentRounding)}));
}

/// max(x, 0) + p(a)
Real add_polynomial(const Polynomials& p, Real x, Real a, Value* interval) {
  Real sum = look_up(p[0], x, interval);
  for (size_t i = 1; i + 1 < p.size(); ++i) sum = fma(sum, a, look_up(p[i], x, interval));
  Real positive = choose(x.of(0) > x, x.of(0), x);  // NaN stays
  return fma(sum, a, positive + look_up(p.back(), x, interval));
}

Real silu(Real x) {
  Real a = bounded_magnitude(x, kSiluEnd);
  return add_polynomial(kSilu, x, a, x.k->b.CreateLShr((a + kSiluStart).bits(), x.integer(kIntervalBits)));
}

Real gelu(const Polynomials& p, Real x) {
  Real a = bounded_magnitude(x, kGeluEnd);
  return add_polynomial(p, x, a, fma(a, x.of(1 / kGeluWidth), magic_of(x)).bits());
}

}  // namespace

bool has_activation_tables(Real x) {
  return x.v->getType()->getScalarType()->isFloatTy() && width_of(x.v) == 16 && x.k->target.has("avx512dq");
}

Real emit_by_table(const ActivationForm& form, Real x) {
  switch (form.activation) {
    case TabledActivation::silu:
      return silu(x);
    case TabledActivation::gelu:
      return gelu(kGelu, x);
    case TabledActivation::gelu_rounded:
      return gelu(kGelu, x * x.of(form.stretch)) * x.of(1 / form.stretch);
    case TabledActivation::gelu_tanh:
      return gelu(kGeluTanh, x);
  }
  throw fail(E::internal, "no tables for activation {}", static_cast<int>(form.activation));
}

}  // namespace opfuse::cpu
