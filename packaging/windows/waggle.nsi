; The Windows installer: for one person, no administrator, a menu entry, waggle:// links, an uninstaller.
; makensis -DVERSION=0.1.0 -DNUMBERS=0.1.0.0 -DPAYLOAD=build/Waggle -DICON=build/waggle.ico -DOUT=dist/Waggle-0.1.0-setup.exe waggle.nsi
Unicode true
!include MUI2.nsh
!include FileFunc.nsh
!define APP "Waggle"
!define WAGGLE "$INSTDIR\Waggle.exe"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${APP}"

Name "${APP}"
OutFile "${OUT}"
InstallDir "$LOCALAPPDATA\Programs\${APP}"
InstallDirRegKey HKCU "Software\${APP}" "InstallDir"
RequestExecutionLevel user
SetCompressor /SOLID lzma
SetCompressorDictSize 64
ManifestDPIAware true
VIProductVersion "${NUMBERS}"
VIAddVersionKey ProductName "${APP}"
VIAddVersionKey ProductVersion "${VERSION}"
VIAddVersionKey FileVersion "${VERSION}"
VIAddVersionKey FileDescription "${APP} installer"
VIAddVersionKey LegalCopyright "Waggle contributors, Apache-2.0"

!define MUI_ICON "${ICON}"
!define MUI_UNICON "${ICON}"
!define MUI_FINISHPAGE_RUN "${WAGGLE}"
!define MUI_WELCOMEPAGE_TEXT "Waggle lets your computer learn with others.$\r$\n$\r$\nIt is installed for you alone, without administrator rights, and can be removed in Settings, Apps."
!insertmacro MUI_PAGE_WELCOME
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"

Function .onVerifyInstDir
  ; an upgrade goes over an earlier Waggle; any other folder must be new or empty, because the uninstaller empties it
  IfFileExists "${WAGGLE}" fine
  ${DirState} "$INSTDIR" $0
  IntCmp $0 1 0 fine
  Abort
fine:
FunctionEnd

!macro RemoveProgram UN
Function ${UN}RemoveProgram
  Delete "${WAGGLE}"
  Delete "$INSTDIR\waggle-console.exe"
  Delete "$INSTDIR\waggle-verifier.exe"
  RMDir /r "$INSTDIR\_internal"
  RMDir /r "$INSTDIR\notices"
  Delete "$INSTDIR\uninstall.exe"
FunctionEnd
!macroend
!insertmacro RemoveProgram ""
!insertmacro RemoveProgram "un."

Section "Waggle"
  ; a program that runs cannot be renamed over itself: say so before anything is touched
again:
  ClearErrors
  IfFileExists "${WAGGLE}" 0 free
  Rename "${WAGGLE}" "$INSTDIR\Waggle.old"
  IfErrors 0 moved
  MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "Waggle is running. Close its window, then try again." /SD IDCANCEL IDRETRY again
  Abort
moved:
  Delete "$INSTDIR\Waggle.old"
free:
  Call RemoveProgram
  SetOutPath "$INSTDIR"
  File /r "${PAYLOAD}/*.*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  CreateShortcut "$SMPROGRAMS\${APP}.lnk" "${WAGGLE}"
  WriteRegStr HKCU "Software\${APP}" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "Software\Classes\waggle" "" "URL:Waggle link"
  WriteRegStr HKCU "Software\Classes\waggle" "URL Protocol" ""
  WriteRegStr HKCU "Software\Classes\waggle\DefaultIcon" "" "${WAGGLE},0"
  WriteRegStr HKCU "Software\Classes\waggle\shell\open\command" "" '"${WAGGLE}" "%1"'
  WriteRegStr HKCU "${UNINSTALL}" "DisplayName" "${APP}"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayVersion" "${VERSION}"
  WriteRegStr HKCU "${UNINSTALL}" "Publisher" "Waggle contributors"
  WriteRegStr HKCU "${UNINSTALL}" "DisplayIcon" "${WAGGLE}"
  WriteRegStr HKCU "${UNINSTALL}" "InstallLocation" "$INSTDIR"
  WriteRegStr HKCU "${UNINSTALL}" "UninstallString" '"$INSTDIR\uninstall.exe"'
  WriteRegStr HKCU "${UNINSTALL}" "QuietUninstallString" '"$INSTDIR\uninstall.exe" /S'
  WriteRegDWORD HKCU "${UNINSTALL}" "NoModify" 1
  WriteRegDWORD HKCU "${UNINSTALL}" "NoRepair" 1
  ${GetSize} "$INSTDIR" "/S=0K" $0 $1 $2
  WriteRegDWORD HKCU "${UNINSTALL}" "EstimatedSize" $0
SectionEnd

Section "Uninstall"
  ; what Waggle learned lies in $LOCALAPPDATA\waggle and stays; only what was installed goes
  Call un.RemoveProgram
  RMDir "$INSTDIR"
  Delete "$SMPROGRAMS\${APP}.lnk"
  DeleteRegKey HKCU "Software\Classes\waggle"
  DeleteRegKey HKCU "${UNINSTALL}"
  DeleteRegKey HKCU "Software\${APP}"
  IfSilent done
  IfFileExists "$LOCALAPPDATA\waggle\*.*" 0 done
  MessageBox MB_YESNO|MB_DEFBUTTON2 "Also remove what Waggle learned on this computer, and the name it has in its swarm?" IDNO done
  RMDir /r "$LOCALAPPDATA\waggle"
done:
SectionEnd
