; The Windows installer: for one user, without administrator rights, with a menu entry, waggle:// links and an uninstaller.
; makensis -DVERSION=0.1.0 -DNUMBERS=0.1.0.0 -DPAYLOAD=build/Waggle -DICON=build/waggle.ico -DSIDE=build/side.bmp -DHEADER=build/header.bmp -DOUT=dist/Waggle-0.1.0-setup.exe
;   -DPYTHON=python3 -DSIGN=packaging/windows_sign.py waggle.nsi
Unicode true
!include MUI2.nsh
!include FileFunc.nsh
!include LogicLib.nsh
!define APP "Waggle"
!define WAGGLE "$INSTDIR\Waggle.exe"
; in a folder that is on every user's PATH: NSIS cannot edit PATH itself, because its strings are too short
!define COMMAND "$LOCALAPPDATA\Microsoft\WindowsApps\waggle.cmd"
!define UNINSTALL "Software\Microsoft\Windows\CurrentVersion\Uninstall\${APP}"

!finalize '"${PYTHON}" "${SIGN}" "%1"' = 0
!uninstfinalize '"${PYTHON}" "${SIGN}" "%1"' = 0

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
!define MUI_WELCOMEFINISHPAGE_BITMAP "${SIDE}"
!define MUI_UNWELCOMEFINISHPAGE_BITMAP "${SIDE}"
!define MUI_HEADERIMAGE
!define MUI_HEADERIMAGE_RIGHT
!define MUI_HEADERIMAGE_BITMAP "${HEADER}"
BrandingText "${APP} ${VERSION}"
!define MUI_FINISHPAGE_RUN "${WAGGLE}"
!define MUI_WELCOMEPAGE_TEXT "$(About)"
!insertmacro MUI_PAGE_WELCOME
!define MUI_PAGE_CUSTOMFUNCTION_LEAVE ChooseFolder
!insertmacro MUI_PAGE_DIRECTORY
!insertmacro MUI_PAGE_INSTFILES
!insertmacro MUI_PAGE_FINISH
!insertmacro MUI_UNPAGE_CONFIRM
!insertmacro MUI_UNPAGE_INSTFILES
!insertmacro MUI_LANGUAGE "English"
!insertmacro MUI_LANGUAGE "German"

; the first is the default for all other languages
!macro Words NAME ENGLISH GERMAN
  LangString ${NAME} ${LANG_ENGLISH} "${ENGLISH}"
  LangString ${NAME} ${LANG_GERMAN} "${GERMAN}"
!macroend
!insertmacro Words About \
  "Waggle lets your computer learn with others.$\r$\n$\r$\nIt is installed for you alone, without administrator rights, and can be removed in Settings, Apps." \
  "Mit Waggle lernt dieser Computer gemeinsam mit anderen.$\r$\n$\r$\nEs wird nur für dich installiert, ohne Administratorrechte, und lässt sich in Einstellungen, Apps wieder entfernen."
!insertmacro Words IsRunning \
  "Waggle is running, perhaps only as an icon beside the clock. Quit it there or in its window, then try again." \
  "Waggle läuft, vielleicht nur als Symbol neben der Uhr. Beende es dort oder in seinem Fenster und versuche es dann noch einmal."
!insertmacro Words Stopping "Stopping the engine" "Der Motor wird angehalten"
!insertmacro Words StillRunning "$2 is still running. End it, then try again." \
  "$2 läuft noch. Beende es und versuche es dann noch einmal."
!insertmacro Words RemoveLearned \
  "Also remove what Waggle learned on this computer? The key that makes you who you are in your swarms stays either way." \
  "Auch entfernen, was Waggle auf diesem Computer gelernt hat? Der Schlüssel, der dich in deinen Schwärmen zu dir macht, bleibt in jedem Fall."
!insertmacro Words Invite "Invite to a swarm" "Einladung in einen Schwarm"

; An upgrade replaces an earlier Waggle, and what is left of one does not matter: Waggle removes its own files by name. A folder with
; other things in it gets a folder ${APP}, because its _internal could be another program's.
Function ChooseFolder
  ${GetFileName} "$INSTDIR" $0
  ${If} $0 == "${APP}"
  ${OrIf} ${FileExists} "${WAGGLE}"
    Return
  ${EndIf}
  ${DirState} "$INSTDIR" $0
  ${If} $0 == 1
    StrCpy $INSTDIR "$INSTDIR\${APP}"
  ${EndIf}
FunctionEnd

; a running program cannot be opened for writing, although it can be renamed; neither can the lock of an open window
!macro Held FOLDER NAME
  ${If} ${FileExists} "${FOLDER}\${NAME}"
    ClearErrors
    FileOpen $3 "${FOLDER}\${NAME}" a
    ${If} ${Errors}
      StrCpy $2 "${NAME}"
    ${Else}
      FileClose $3
    ${EndIf}
  ${EndIf}
!macroend

!macro AskToEnd WORDS
  ${If} ${Cmd} `MessageBox MB_RETRYCANCEL|MB_ICONEXCLAMATION "${WORDS}" /SD IDCANCEL IDCANCEL`
    Abort
  ${EndIf}
!macroend

; before any change: the user must close a window; an engine without a window is asked to stop, and has time to do so.
; Waggle.exe may also be an engine started by a scheduled task, which the user would not find on the screen.
!macro EndProgram UN
Function ${UN}EndProgram
  ${Do}
    StrCpy $2 ""
    !insertmacro Held "$INSTDIR" "Waggle.exe"
    ${If} $2 != ""
      StrCpy $2 ""
      !insertmacro Held "$LOCALAPPDATA\waggle" "window.lock"
    ${EndIf}
    ${If} $2 == ""
      ${ExitDo}
    ${EndIf}
    !insertmacro AskToEnd "$(IsRunning)"
  ${Loop}
  ${If} ${FileExists} "$INSTDIR\waggle-console.exe"
    DetailPrint "$(Stopping)"
    nsExec::Exec /TIMEOUT=60000 '"$INSTDIR\waggle-console.exe" ctl stop'
    Pop $0
  ${EndIf}
  ${Do}
    ${ForEach} $1 1 20 + 1
      StrCpy $2 ""
      !insertmacro Held "$INSTDIR" "Waggle.exe"
      !insertmacro Held "$INSTDIR" "waggle-console.exe"
      !insertmacro Held "$INSTDIR" "waggle-verifier.exe"
      ${If} $2 == ""
        Return
      ${EndIf}
      Sleep 500
    ${Next}
    !insertmacro AskToEnd "$(StillRunning)"
  ${Loop}
FunctionEnd
!macroend
!insertmacro EndProgram ""
!insertmacro EndProgram "un."

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

; the command `waggle`; the folder as a variable if possible, because a .cmd file has another encoding for umlauts
Function WriteCommand
  StrLen $0 "$LOCALAPPDATA\"
  StrCpy $1 $INSTDIR $0
  StrCpy $2 $INSTDIR
  ${If} $1 == "$LOCALAPPDATA\"
    StrCpy $2 $INSTDIR "" $0
    StrCpy $2 "%LOCALAPPDATA%\$2"
  ${EndIf}
  ${If} ${FileExists} "$LOCALAPPDATA\Microsoft\WindowsApps\*.*"
    FileOpen $0 "${COMMAND}" w
    FileWrite $0 '@"$2\waggle-console.exe" %*$\r$\n'
    FileClose $0
  ${EndIf}
FunctionEnd

Section "Waggle"
  Call ChooseFolder
  Call EndProgram
  Call RemoveProgram
  SetOutPath "$INSTDIR"
  File /r "${PAYLOAD}/*.*"
  WriteUninstaller "$INSTDIR\uninstall.exe"
  Call WriteCommand
  SetOutPath "$PROFILE"  ; the shortcut's working folder: users should not save files in the program's folder
  CreateShortcut "$SMPROGRAMS\${APP}.lnk" "${WAGGLE}"
  WriteRegStr HKCU "Software\${APP}" "InstallDir" "$INSTDIR"
  WriteRegStr HKCU "Software\Classes\waggle" "" "URL:Waggle link"
  WriteRegStr HKCU "Software\Classes\waggle" "URL Protocol" ""
  WriteRegStr HKCU "Software\Classes\waggle\DefaultIcon" "" "${WAGGLE},0"
  WriteRegStr HKCU "Software\Classes\waggle\shell\open\command" "" '"${WAGGLE}" "%1"'
  WriteRegStr HKCU "Software\Classes\.waggle" "" "Waggle.Invite"
  WriteRegStr HKCU "Software\Classes\Waggle.Invite" "" "$(Invite)"
  WriteRegStr HKCU "Software\Classes\Waggle.Invite\DefaultIcon" "" "${WAGGLE},0"
  WriteRegStr HKCU "Software\Classes\Waggle.Invite\shell\open\command" "" '"${WAGGLE}" "%1"'
  ${RefreshShellIcons}
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
  ; the training stays unless the user decides otherwise; then Waggle removes only files that it wrote
  Call un.EndProgram
  ${IfNot} ${Silent}
  ${AndIf} ${FileExists} "$LOCALAPPDATA\waggle\*.*"
  ${AndIf} ${Cmd} `MessageBox MB_YESNO|MB_DEFBUTTON2 "$(RemoveLearned)" IDYES`
    nsExec::ExecToLog '"$INSTDIR\waggle-console.exe" goodbye --remove all'
    Pop $0
  ${EndIf}
  nsExec::Exec /TIMEOUT=60000 '"$INSTDIR\waggle-console.exe" install-service --remove' ; else a login would start what is gone
  Pop $0
  Call un.RemoveProgram
  RMDir "$INSTDIR"
  Delete "${COMMAND}"
  Delete "$SMPROGRAMS\${APP}.lnk"
  DeleteRegKey HKCU "Software\Classes\waggle"
  DeleteRegKey HKCU "Software\Classes\.waggle"
  DeleteRegKey HKCU "Software\Classes\Waggle.Invite"
  ${RefreshShellIcons}
  DeleteRegKey HKCU "${UNINSTALL}"
  DeleteRegKey HKCU "Software\${APP}"
SectionEnd
