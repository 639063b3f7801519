/* Wine has no icuuc.dll, the converters of ICU, which Qt imports. Without a converter, Qt uses its own for UTF-8 and UTF-16. */
#define NAME(n) __declspec(dllexport) int n(void) { return 0; }
NAME(ucnv_open) NAME(UCNV_TO_U_CALLBACK_SUBSTITUTE) NAME(UCNV_FROM_U_CALLBACK_SUBSTITUTE) NAME(ucnv_close) NAME(ucnv_reset)
NAME(ucnv_getMaxCharSize) NAME(ucnv_getName) NAME(ucnv_getToUCallBack) NAME(ucnv_getFromUCallBack) NAME(ucnv_setToUCallBack)
NAME(ucnv_setFromUCallBack) NAME(ucnv_fromUnicode) NAME(ucnv_toUnicode) NAME(ucnv_countAvailable) NAME(ucnv_getAvailableName)
NAME(ucnv_cbToUWriteUChars) NAME(ucnv_cbFromUWriteUChars) NAME(ucnv_toUCountPending) NAME(ucnv_fromUCountPending)
NAME(ucnv_getStandardName)
