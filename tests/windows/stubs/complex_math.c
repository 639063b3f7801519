/* Wine's C library lacks the complex functions that numpy imports. rig.py exports each w_NAME as NAME and forwards all others.

   Microsoft has no complex type: structures of two numbers, of which the large one is passed by reference. Its long double is a
   double. */
#include <complex.h>

typedef struct { double re, im; } wide;
typedef struct { float re, im; } narrow;

static double complex of_wide(wide z) { return __builtin_complex(z.re, z.im); }
static float complex of_narrow(narrow z) { return __builtin_complex(z.re, z.im); }
static wide to_wide(double complex z) { wide w = {creal(z), cimag(z)}; return w; }
static narrow to_narrow(float complex z) { narrow n = {crealf(z), cimagf(z)}; return n; }

#define COMPLEX(n) \
  wide w_##n(wide z) { return to_wide(n(of_wide(z))); } \
  wide w_##n##l(wide z) { return to_wide(n(of_wide(z))); } \
  narrow w_##n##f(narrow z) { return to_narrow(n##f(of_narrow(z))); }
#define REAL(n) \
  double w_##n(wide z) { return n(of_wide(z)); } \
  double w_##n##l(wide z) { return n(of_wide(z)); } \
  float w_##n##f(narrow z) { return n##f(of_narrow(z)); }

COMPLEX(cexp) COMPLEX(clog) COMPLEX(csqrt)
COMPLEX(csin) COMPLEX(ccos) COMPLEX(ctan) COMPLEX(csinh) COMPLEX(ccosh) COMPLEX(ctanh)
COMPLEX(casin) COMPLEX(cacos) COMPLEX(catan) COMPLEX(casinh) COMPLEX(cacosh) COMPLEX(catanh)
REAL(cabs) REAL(carg) REAL(creal) REAL(cimag)
wide w_cpow(wide a, wide b) { return to_wide(cpow(of_wide(a), of_wide(b))); }
wide w_cpowl(wide a, wide b) { return w_cpow(a, b); }
narrow w_cpowf(narrow a, narrow b) { return to_narrow(cpowf(of_narrow(a), of_narrow(b))); }
