<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="pl" sourcelanguage="en">
<context><name>Waggle</name>
<message><source> (answers of some not verified)</source><translation> (odpowiedzi niektórych niesprawdzone)</translation></message>
<message><source> (it has no other)</source><translation> (innych nie ma)</translation></message>
<message><source> (the closest it has)</source><translation> (najbliższa, jaka jest)</translation></message>
<message><source> ago</source><translation> temu</translation></message>
<message numerus="yes"><source> and %n more</source><translation><numerusform> i jeszcze %n</numerusform><numerusform> i jeszcze %n</numerusform><numerusform> i jeszcze %n</numerusform></translation></message>
<message numerus="yes"><source> and ignored %n misses.</source><translation><numerusform> i pominął %n chybienie.</numerusform><numerusform> i pominął %n chybienia.</numerusform><numerusform> i pominął %n chybień.</numerusform></translation></message>
<message numerus="yes"><source> and shared with %n peers</source><translation><numerusform>, odpowiedzi pobrał %n peer</numerusform><numerusform>, odpowiedzi pobrały %n peery</numerusform><numerusform>, odpowiedzi pobrało %n peerów</numerusform></translation></message>
<message numerus="yes"><source> and took %n of yours.</source><translation><numerusform> i wziął %n od Ciebie.</numerusform><numerusform> i wziął %n od Ciebie.</numerusform><numerusform> i wziął %n od Ciebie.</numerusform></translation></message>
<message><source>%1 %2 %3 %4</source><translation>%1 %2 %3 %4</translation></message>
<message><source>%1 (you)</source><translation>%1 (Ty)</translation></message>
<message><source>%1 W for the graphics processor, at %2% of the time</source><translation>%1 W na procesor graficzny, przez %2 % czasu</translation></message>
<message><source>%1 and %2</source><translation>%1 i %2</translation></message>
<message><source>%1 arrived damaged, twice.</source><translation>Plik %1 dwa razy dotarł uszkodzony.</translation></message>
<message><source>%1 became shorter</source><translation>%1 jest teraz krótszy</translation></message>
<message><source>%1 begins anew: the answers to its questions are checked now.</source><translation>%1 zaczyna od nowa: odpowiedzi na jego pytania są już sprawdzane.</translation></message>
<message><source>%1 billion parameters</source><translation>%1 mld parametrów</translation></message>
<message><source>%1 bits in groups of %2</source><translation>%1 bit. w grupach po %2</translation></message>
<message><source>%1 broke a rule.</source><translation>Złamało regułę: %1.</translation></message>
<message><source>%1 cannot be %2.</source><translation>%1 nie może mieć wartości %2.</translation></message>
<message><source>%1 cannot be converted now: %2.</source><translation>Nie da się teraz przekonwertować %1: %2.</translation></message>
<message><source>%1 cannot be joined now.</source><translation>Nie możesz teraz dołączyć do %1.</translation></message>
<message><source>%1 cannot be listened on: %2.</source><translation>Nie da się nasłuchiwać na %1: %2.</translation></message>
<message><source>%1 cannot be opened: %2.</source><translation>Nie da się otworzyć %1: %2.</translation></message>
<message><source>%1 cannot be reached by ssh.</source><translation>Nie można połączyć się z %1 przez ssh.</translation></message>
<message><source>%1 cannot be read: %2.</source><translation>Nie da się odczytać %1: %2.</translation></message>
<message><source>%1 cannot be removed: %2.</source><translation>Nie da się usunąć %1: %2.</translation></message>
<message><source>%1 cannot be used: %2</source><translation>Nie da się użyć %1: %2</translation></message>
<message><source>%1 cannot be used: %2: %3.</source><translation>Nie da się użyć %1: %2: %3.</translation></message>
<message><source>%1 cannot be written to the disk: %2.</source><translation>Nie da się zapisać %1 na dysku: %2.</translation></message>
<message><source>%1 cannot be written.</source><translation>Nie da się zapisać %1.</translation></message>
<message><source>%1 cannot be written: %2.</source><translation>Nie da się zapisać %1: %2.</translation></message>
<message><source>%1 chose a group twice, or one that does not exist.</source><translation>%1 wybiera grupę dwa razy albo taką, która nie istnieje.</translation></message>
<message><source>%1 chose too many groups.</source><translation>%1 wybiera zbyt wiele grup.</translation></message>
<message><source>%1 contains %2</source><translation>%1 zawiera %2</translation></message>
<message><source>%1 contains %2, which nobody sees</source><translation>%1 zawiera %2, czego nikt nie zobaczy</translation></message>
<message><source>%1 days</source><translation>%1 dni</translation></message>
<message><source>%1 did not return one float for each of %2 tokens.</source><translation>%1 nie zwraca po jednej liczbie zmiennoprzecinkowej na token (tokeny: %2).</translation></message>
<message><source>%1 does not say which questions its members agree on.</source><translation>%1 nie podaje, które pytania uzgodnili członkowie.</translation></message>
<message><source>%1 downloaded so far</source><translation>pobrano dotąd %1</translation></message>
<message><source>%1 has %2 characters, more than %3</source><translation>%1 ma ponad %3 znaków: %2</translation></message>
<message><source>%1 has %2 questions, more than %3.</source><translation>%1 ma ponad %3 pytań: %2.</translation></message>
<message><source>%1 has GGUF files only, of which Waggle downloads none.</source><translation>%1 ma tylko pliki GGUF, a takich Waggle nie pobiera.</translation></message>
<message><source>%1 has a scale of its own</source><translation>%1 ma własną skalę</translation></message>
<message><source>%1 has a tolerance, but the grader %2 uses none.</source><translation>%1 ma tolerancję, ale sposób oceny %2 jej nie używa.</translation></message>
<message><source>%1 has changed since you trained it.</source><translation>%1 zmienił się od Twojego treningu.</translation></message>
<message><source>%1 has ended.</source><translation>Zakończono: %1.</translation></message>
<message><source>%1 has its weights %2.</source><translation>%1 ma wagi %2.</translation></message>
<message><source>%1 has no %2.</source><translation>W %1 nie ma %2.</translation></message>
<message><source>%1 has no questions.</source><translation>%1 nie ma pytań.</translation></message>
<message><source>%1 has no specialty %2.</source><translation>%1 nie ma specjalności %2.</translation></message>
<message><source>%1 has no such revision.</source><translation>%1 nie ma takiej rewizji.</translation></message>
<message><source>%1 has no visible character</source><translation>%1 nie ma widocznych znaków</translation></message>
<message><source>%1 has rounds already.</source><translation>%1 ma już rundy.</translation></message>
<message><source>%1 has too few questions for %2 a round.</source><translation>%1 ma za mało pytań: na rundę potrzeba %2.</translation></message>
<message><source>%1 has too few questions of %2 for a worked example.</source><translation>%1 ma za mało pytań typu %2 na rozwiązany przykład.</translation></message>
<message><source>%1 has white space around it</source><translation>%1 ma na brzegach białe znaki</translation></message>
<message><source>%1 holds no settings of a model.</source><translation>%1 nie zawiera ustawień modelu.</translation></message>
<message><source>%1 hours</source><translation>%1 h</translation></message>
<message><source>%1 in %2.</source><translation>%1 w %2.</translation></message>
<message><source>%1 is %2, which is no web address.</source><translation>%1 to %2, a to nie jest adres internetowy.</translation></message>
<message><source>%1 is %2.</source><translation>%1: %2.</translation></message>
<message><source>%1 is a folder of yours, which Waggle does not delete.</source><translation>%1 to Twój folder, którego Waggle nie usuwa.</translation></message>
<message><source>%1 is a private swarm, and its key is not here.</source><translation>%1 to prywatny rój, a jego klucza tu nie ma.</translation></message>
<message><source>%1 is being downloaded by another program.</source><translation>Inny program właśnie pobiera %1.</translation></message>
<message><source>%1 is being downloaded. Until it is here, you train the starter: see the page Models.</source><translation>Trwa pobieranie %1. Do tego czasu trenujesz starter: zobacz stronę Modele.</translation></message>
<message><source>%1 is damaged and cannot be set aside: %2.</source><translation>%1: dane są uszkodzone i nie da się ich odłożyć na bok: %2.</translation></message>
<message><source>%1 is empty</source><translation>%1 – pusto</translation></message>
<message><source>%1 is given only to those who accepted its licence.</source><translation>%1 dostają tylko ci, którzy zaakceptowali licencję.</translation></message>
<message><source>%1 is in another time zone, where it is %2.</source><translation>%1 jest w innej strefie czasowej, jest tam %2.</translation></message>
<message><source>%1 is in use by another engine.</source><translation>%1: używa tego inny silnik.</translation></message>
<message><source>%1 is incomplete</source><translation>%1 – niekompletne</translation></message>
<message><source>%1 is larger than %2 MiB.</source><translation>%1: rozmiar przekracza %2 MiB.</translation></message>
<message><source>%1 is missing</source><translation>brakuje %1</translation></message>
<message><source>%1 is no file of a run: %2.</source><translation>%1 nie jest plikiem przebiegu: %2.</translation></message>
<message><source>%1 is no file of questions.</source><translation>%1 nie jest plikiem z pytaniami.</translation></message>
<message><source>%1 is no gateway's address.</source><translation>%1 nie jest adresem bramy.</translation></message>
<message><source>%1 is no name for a model.</source><translation>%1 nie nadaje się na nazwę modelu.</translation></message>
<message><source>%1 is no number</source><translation>%1 nie jest liczbą</translation></message>
<message><source>%1 is no peer's id.</source><translation>%1 nie jest identyfikatorem peera.</translation></message>
<message><source>%1 is no recorded run.</source><translation>%1 nie jest nagranym przebiegiem.</translation></message>
<message><source>%1 is not a file</source><translation>%1 nie jest plikiem</translation></message>
<message><source>%1 is not a file.</source><translation>%1 nie jest plikiem.</translation></message>
<message><source>%1 is not a seed's address.</source><translation>%1 nie jest adresem węzła startowego.</translation></message>
<message><source>%1 is not installed, so it gets no figures.</source><translation>Nie zainstalowano %1, więc nie będzie tam danych.</translation></message>
<message><source>%1 is not of the form section.name=value.</source><translation>%1 nie ma postaci section.name=value.</translation></message>
<message><source>%1 is not on this computer yet.</source><translation>%1: tego jeszcze nie ma na tym komputerze.</translation></message>
<message><source>%1 is not the name of a model.</source><translation>%1 nie jest nazwą modelu.</translation></message>
<message><source>%1 is not valid TOML: %2. Mend that line, or rename the file.</source><translation>%1 nie jest poprawnym plikiem TOML: %2. Popraw ten wiersz albo zmień nazwę pliku.</translation></message>
<message><source>%1 is of a run with peers, which cannot be repeated.</source><translation>%1 pochodzi z przebiegu z peerami, którego nie da się powtórzyć.</translation></message>
<message><source>%1 is running.</source><translation>%1 działa.</translation></message>
<message><source>%1 is the model of now</source><translation>%1 to obecny model</translation></message>
<message><source>%1 is too large: it has more than %2 MB.</source><translation>%1: za duży rozmiar, ponad %2 MB.</translation></message>
<message><source>%1 is too long for a run.</source><translation>%1: za długie jak na przebieg.</translation></message>
<message><source>%1 is trained instead.</source><translation>Zamiast tego trenuje %1.</translation></message>
<message><source>%1 judged</source><translation>%1 z oceną</translation></message>
<message><source>%1 keeps training until the new model is ready.</source><translation>%1 trenuje dalej, aż nowy model będzie gotowy.</translation></message>
<message><source>%1 million parameters</source><translation>%1 mln parametrów</translation></message>
<message><source>%1 min</source><translation>%1 min</translation></message>
<message><source>%1 min ago</source><translation>%1 min temu</translation></message>
<message><source>%1 minutes</source><translation>%1 min</translation></message>
<message><source>%1 names %2, which is not there.</source><translation>%1 wskazuje %2, a tego tam nie ma.</translation></message>
<message><source>%1 names %2, which it may not: %3.</source><translation>%1 wskazuje %2, a to niedozwolone: %3.</translation></message>
<message><source>%1 names a key for which everybody can sign.</source><translation>%1 wskazuje klucz, którym każdy może podpisywać.</translation></message>
<message><source>%1 names a level of %2 that does not exist.</source><translation>%1 wskazuje poziom, który nie istnieje w %2.</translation></message>
<message><source>%1 names a level of %2 with false answers.</source><translation>%1 wskazuje poziom %2 z błędnymi odpowiedziami.</translation></message>
<message><source>%1 names a revision.</source><translation>%1 wskazuje rewizję.</translation></message>
<message><source>%1 needs %2 more, and the disk has %3 free.</source><translation>%1 potrzebuje jeszcze %2, a na dysku wolne jest %3.</translation></message>
<message><source>%1 of %2</source><translation>%1 z %2</translation></message>
<message><source>%1 of %2 MB</source><translation>%1 z %2 MB</translation></message>
<message><source>%1 of %2 answers are %3; line %4 is not: "%5".</source><translation>%1 z %2 odpowiedzi to %3; w wierszu %4 jest inaczej: „%5”.</translation></message>
<message><source>%1 of %2 answers are written.</source><translation>Gotowe odpowiedzi: %1 z %2.</translation></message>
<message><source>%1 of %2 are here; after an interruption it continues there.</source><translation>Pobrano %1 z %2; po przerwie pobieranie ruszy od tego miejsca.</translation></message>
<message><source>%1 of %2 arrived damaged, twice.</source><translation>Plik %1 z %2 dwa razy dotarł uszkodzony.</translation></message>
<message><source>%1 of %2 core</source><translation>%1 z %2 rdzenia</translation></message>
<message><source>%1 of %2 cores</source><translation>%1 z %2 rdzeni</translation></message>
<message><source>%1 of %2 downloaded</source><translation>pobrano %1 z %2</translation></message>
<message><source>%1 of %2 first right answers</source><translation>Pierwsze dobre: %1 z %2</translation></message>
<message><source>%1 of %2 kB</source><translation>%1 z %2 kB</translation></message>
<message><source>%1 of %2 new questions right, asked after this round</source><translation>%1 z %2 nowych pytań dobrze, zadanych po tej rundzie</translation></message>
<message><source>%1 of %2 questions answered.</source><translation>Odpowiedzi: %1 z %2 pytań.</translation></message>
<message><source>%1 of %2 right</source><translation>%1 z %2 dobrze</translation></message>
<message><source>%1 of %2 right: %3 (%4 to %5)</source><translation>%1 z %2 dobrze: %3 (od %4 do %5)</translation></message>
<message numerus="yes"><source>%1 of %n guesses were right.</source><translation><numerusform>Trafny %1 z %n typu.</numerusform><numerusform>Trafne: %1 z %n typów.</numerusform><numerusform>Trafne: %1 z %n typów.</numerusform></translation></message>
<message><source>%1 of 100</source><translation>%1 na 100</translation></message>
<message><source>%1 of 100 fewer than alone</source><translation>%1 na 100 mniej niż samodzielnie</translation></message>
<message><source>%1 of 100 more than alone</source><translation>%1 na 100 więcej niż samodzielnie</translation></message>
<message><source>%1 of 100 with peers, %2 alone after as many rounds. The difference may be chance.</source><translation>%1 na 100 z peerami, %2 samodzielnie po tej samej liczbie rund. Różnica może być przypadkowa.</translation></message>
<message><source>%1 of all</source><translation>%1 ze wszystkich</translation></message>
<message><source>%1 of them right, in %2</source><translation>%1 z nich dobrze, w %2</translation></message>
<message><source>%1 on %2 (%3), %4, %5 parameters</source><translation>%1 na %2 (%3), %4, parametry: %5</translation></message>
<message><source>%1 on the disk. It comes from the Python package index, is checked against sums that came with Waggle, and is under the licences of PyTorch and NVIDIA.</source><translation>%1 na dysku. Pochodzi z Python Package Index, jest sprawdzane z sumami dostarczonymi z Waggle i podlega licencjom PyTorch i NVIDIA.</translation></message>
<message><source>%1 returned a number that is not finite.</source><translation>%1 zwraca liczbę, która nie jest skończona.</translation></message>
<message numerus="yes"><source>%1 right in the test after %n rounds</source><translation><numerusform>%1 dobrze w teście po %n rundzie</numerusform><numerusform>%1 dobrze w teście po %n rundach</numerusform><numerusform>%1 dobrze w teście po %n rundach</numerusform></translation></message>
<message><source>%1 right in the test before its first round</source><translation>%1 dobrze w teście przed pierwszą rundą</translation></message>
<message><source>%1 s ago</source><translation>%1 s temu</translation></message>
<message><source>%1 seconds</source><translation>%1 s</translation></message>
<message numerus="yes"><source>%1 sent you %n examples</source><translation><numerusform>Od %1 przyszedł do Ciebie %n przykład</numerusform><numerusform>Od %1 przyszły do Ciebie %n przykłady</numerusform><numerusform>Od %1 przyszło do Ciebie %n przykładów</numerusform></translation></message>
<message><source>%1 sets %2, which decides no round.</source><translation>%1 ustawia %2, a to nie decyduje o żadnej rundzie.</translation></message>
<message><source>%1 speaks protocol %2, this Waggle speaks %3.</source><translation>%1 używa protokołu %2, a ten Waggle – %3.</translation></message>
<message><source>%1 swarms are remembered already.</source><translation>Zapamiętane roje: już %1.</translation></message>
<message><source>%1 to download</source><translation>%1 do pobrania</translation></message>
<message><source>%1 today, %2 since %3: about as much as a laptop takes in %4.</source><translation>Dziś %1, a %2 od %3: mniej więcej tyle, ile laptop zużywa przez %4.</translation></message>
<message><source>%1 unseen questions; band: margin of error</source><translation>Nowe pytania: %1; pasmo błędu</translation></message>
<message><source>%1 waiting</source><translation>%1 w kolejce</translation></message>
<message><source>%1 was closed just now.</source><translation>Przed chwilą zamknięto %1.</translation></message>
<message><source>%1 was damaged.</source><translation>Uszkodzone dane: %1.</translation></message>
<message><source>%1 was found</source><translation>wykryto: %1</translation></message>
<message><source>%1 was not converted yet.</source><translation>%1: jeszcze bez konwersji.</translation></message>
<message><source>%1 was right first</source><translation>najpierw %1</translation></message>
<message><source>%1 was right first.</source><translation>Pierwszą dobrą odpowiedź dał peer %1.</translation></message>
<message><source>%1 would be trained in %2 and lose its updates.</source><translation>Trening %1 w %2 gubiłby poprawki.</translation></message>
<message><source>%1 yours, %2 theirs</source><translation>Twoje: %1, od innych: %2</translation></message>
<message><source>%1+ answers an hour, %2 of %3 GB of memory</source><translation>%1+ odpowiedzi/godz., %2 z %3 GB pamięci</translation></message>
<message><source>%1, %2 left</source><translation>%1, jeszcze %2</translation></message>
<message><source>%1, a new question that others take too</source><translation>%1, nowe pytanie, które przyjmują też inni</translation></message>
<message><source>%1, alone</source><translation>%1, samodzielnie</translation></message>
<message><source>%1, also in its smallest parts.</source><translation>%1, nawet w najmniejszych częściach.</translation></message>
<message><source>%1, and %2 answers to each, of at most %3 tokens: %4.</source><translation>%1, a na każde powstaje po %2 odpowiedzi, każda do %3 tokenów: %4.</translation></message>
<message><source>%1, as you train it</source><translation>%1, tak jak go trenujesz</translation></message>
<message><source>%1, at %2% of the time</source><translation>%1, przez %2 % czasu</translation></message>
<message><source>%1, estimated</source><translation>%1, szacunkowo</translation></message>
<message><source>%1, line %2: %3 has this question too, on line %4: %5.</source><translation>%1, wiersz %2: to pytanie jest też w %3, w wierszu %4: %5.</translation></message>
<message><source>%1, line %2: %3.</source><translation>%1, wiersz %2: %3.</translation></message>
<message><source>%1, other questions</source><translation>%1, inne pytania</translation></message>
<message><source>%1, port %2, cannot be listened on: %3.</source><translation>Nie da się nasłuchiwać na %1, port %2: %3.</translation></message>
<message><source>%1, question %2</source><translation>%1, pytanie %2</translation></message>
<message><source>%1: %2 was right first</source><translation>%1: pierwszy odpowiedział dobrze peer %2</translation></message>
<message numerus="yes"><source>%1: %n files removed, %2</source><translation><numerusform>%1: usunięto %n plik, %2</numerusform><numerusform>%1: usunięto %n pliki, %2</numerusform><numerusform>%1: usunięto %n plików, %2</numerusform></translation></message>
<message><source>%1: a question, %2</source><translation>%1: pytanie, %2</translation></message>
<message><source>%1: from %2 to %3</source><translation>%1: od %2 do %3</translation></message>
<message><source>%1: nothing</source><translation>%1: nic</translation></message>
<message><source>%1; answers of all not verified</source><translation>%1; wszystkie odpowiedzi niesprawdzone</translation></message>
<message><source>%2 from %1</source><translation>%2 od %1</translation></message>
<message><source>%2 learned from %1</source><translation>Nauka od %1: %2</translation></message>
<message><source>%2 on %1</source><translation>%2 na %1</translation></message>
<message><source>%2 to %1</source><translation>%2 do %1</translation></message>
<message numerus="yes"><source>%n addresses</source><translation><numerusform>%n adres</numerusform><numerusform>%n adresy</numerusform><numerusform>%n adresów</numerusform></translation></message>
<message numerus="yes"><source>%n addresses tried so far.</source><translation><numerusform>Wypróbowano dotąd %n adres.</numerusform><numerusform>Wypróbowano dotąd %n adresy.</numerusform><numerusform>Wypróbowano dotąd %n adresów.</numerusform></translation></message>
<message numerus="yes"><source>%n answers</source><translation><numerusform>%n odpowiedź</numerusform><numerusform>%n odpowiedzi</numerusform><numerusform>%n odpowiedzi</numerusform></translation></message>
<message numerus="yes"><source>%n answers more likely next time</source><translation><numerusform>%n odpowiedź bardziej prawdopodobna</numerusform><numerusform>%n odpowiedzi bardziej prawdopodobne</numerusform><numerusform>%n odpowiedzi bardziej prawdopodobnych</numerusform></translation></message>
<message numerus="yes"><source>%n bytes</source><translation><numerusform>%n bajt</numerusform><numerusform>%n bajty</numerusform><numerusform>%n bajtów</numerusform></translation></message>
<message numerus="yes"><source>%n computers are connected</source><translation><numerusform>Połączony jest %n komputer</numerusform><numerusform>Połączone są %n komputery</numerusform><numerusform>Połączonych jest %n komputerów</numerusform></translation></message>
<message numerus="yes"><source>%n computers are there now.</source><translation><numerusform>Jest tam teraz %n komputer.</numerusform><numerusform>Są tam teraz %n komputery.</numerusform><numerusform>Jest tam teraz %n komputerów.</numerusform></translation></message>
<message numerus="yes"><source>%n computers train with you</source><translation><numerusform>%n komputer trenuje z Tobą</numerusform><numerusform>%n komputery trenują z Tobą</numerusform><numerusform>%n komputerów trenuje z Tobą</numerusform></translation></message>
<message numerus="yes"><source>%n computers trained with you</source><translation><numerusform>%n komputer trenował z Tobą</numerusform><numerusform>%n komputery trenowały z Tobą</numerusform><numerusform>%n komputerów trenowało z Tobą</numerusform></translation></message>
<message numerus="yes"><source>%n computers were there when last asked.</source><translation><numerusform>Przy ostatnim sprawdzeniu był tam %n komputer.</numerusform><numerusform>Przy ostatnim sprawdzeniu były tam %n komputery.</numerusform><numerusform>Przy ostatnim sprawdzeniu było tam %n komputerów.</numerusform></translation></message>
<message numerus="yes"><source>%n cores of %1 W each</source><translation><numerusform>%n rdzeń o mocy %1 W</numerusform><numerusform>%n rdzenie po %1 W</numerusform><numerusform>%n rdzeni po %1 W</numerusform></translation></message>
<message numerus="yes"><source>%n direct</source><translation><numerusform>%n bezpośrednio</numerusform><numerusform>%n bezpośrednio</numerusform><numerusform>%n bezpośrednio</numerusform></translation></message>
<message numerus="yes"><source>%n downloads</source><translation><numerusform>%n pobranie</numerusform><numerusform>%n pobrania</numerusform><numerusform>%n pobrań</numerusform></translation></message>
<message numerus="yes"><source>%n earlier turns were left out: there was no room for them.</source><translation><numerusform>Pominięto %n wcześniejszą wymianę zdań: zabrakło na nią miejsca.</numerusform><numerusform>Pominięto %n wcześniejsze wymiany zdań: zabrakło na nie miejsca.</numerusform><numerusform>Pominięto %n wcześniejszych wymian zdań: zabrakło na nie miejsca.</numerusform></translation></message>
<message numerus="yes"><source>%n examples</source><translation><numerusform>%n przykład</numerusform><numerusform>%n przykłady</numerusform><numerusform>%n przykładów</numerusform></translation></message>
<message numerus="yes"><source>%n examples from %1</source><translation><numerusform>%n przykładu od %1</numerusform><numerusform>%n przykładów od %1</numerusform><numerusform>%n przykładów od %1</numerusform></translation></message>
<message numerus="yes"><source>%n examples from peers</source><translation><numerusform>%n przykład od peerów</numerusform><numerusform>%n przykłady od peerów</numerusform><numerusform>%n przykładów od peerów</numerusform></translation></message>
<message numerus="yes"><source>%n examples learned from peers</source><translation><numerusform>Nauka z %n przykładu od peerów</numerusform><numerusform>Nauka z %n przykładów od peerów</numerusform><numerusform>Nauka z %n przykładów od peerów</numerusform></translation></message>
<message numerus="yes"><source>%n files could not be removed</source><translation><numerusform>Nie udało się usunąć %n pliku</numerusform><numerusform>Nie udało się usunąć %n plików</numerusform><numerusform>Nie udało się usunąć %n plików</numerusform></translation></message>
<message numerus="yes"><source>%n files of your own</source><translation><numerusform>%n własny plik</numerusform><numerusform>%n własne pliki</numerusform><numerusform>%n własnych plików</numerusform></translation></message>
<message numerus="yes"><source>%n files, %1</source><translation><numerusform>%n plik, %1</numerusform><numerusform>%n pliki, %1</numerusform><numerusform>%n plików, %1</numerusform></translation></message>
<message numerus="yes"><source>%n first right answers came after learning from another copy.</source><translation><numerusform>%n pierwsza poprawna odpowiedź przyszła po nauce od innej kopii.</numerusform><numerusform>%n pierwsze poprawne odpowiedzi przyszły po nauce od innej kopii.</numerusform><numerusform>%n pierwszych poprawnych odpowiedzi przyszło po nauce od innej kopii.</numerusform></translation></message>
<message numerus="yes"><source>%n for exams</source><translation><numerusform>%n na egzaminy</numerusform><numerusform>%n na egzaminy</numerusform><numerusform>%n na egzaminy</numerusform></translation></message>
<message numerus="yes"><source>%n gone</source><translation><numerusform>%n zniknął</numerusform><numerusform>%n zniknęły</numerusform><numerusform>%n zniknęło</numerusform></translation></message>
<message numerus="yes"><source>%n had only right or only wrong answers: nothing to learn.</source><translation><numerusform>%n miał same dobre albo same złe odpowiedzi: nie było czego się uczyć.</numerusform><numerusform>%n miały same dobre albo same złe odpowiedzi: nie było czego się uczyć.</numerusform><numerusform>%n miało same dobre albo same złe odpowiedzi: nie było czego się uczyć.</numerusform></translation></message>
<message numerus="yes"><source>%n had unusual text</source><translation><numerusform>%n z nietypowym tekstem</numerusform><numerusform>%n z nietypowym tekstem</numerusform><numerusform>%n z nietypowym tekstem</numerusform></translation></message>
<message numerus="yes"><source>%n later rounds will be learned again at the next start, because the engine was killed.</source><translation><numerusform>%n późniejsza runda zostanie powtórzona przy następnym uruchomieniu, bo silnik został przerwany.</numerusform><numerusform>%n późniejsze rundy zostaną powtórzone przy następnym uruchomieniu, bo silnik został przerwany.</numerusform><numerusform>%n późniejszych rund zostanie powtórzonych przy następnym uruchomieniu, bo silnik został przerwany.</numerusform></translation></message>
<message numerus="yes"><source>%n members when last asked</source><translation><numerusform>%n członek przy ostatnim sprawdzeniu</numerusform><numerusform>%n członków przy ostatnim sprawdzeniu</numerusform><numerusform>%n członków przy ostatnim sprawdzeniu</numerusform></translation></message>
<message numerus="yes"><source>%n members, you included</source><translation><numerusform>na razie tylko Ty</numerusform><numerusform>%n członków, razem z Tobą</numerusform><numerusform>%n członków, razem z Tobą</numerusform></translation></message>
<message numerus="yes"><source>%n messages, newest first.</source><translation><numerusform>%n wiadomość, od najnowszej.</numerusform><numerusform>%n wiadomości, od najnowszej.</numerusform><numerusform>%n wiadomości, od najnowszej.</numerusform></translation></message>
<message numerus="yes"><source>%n newer questions are waiting</source><translation><numerusform>Czeka %n nowsze pytanie</numerusform><numerusform>Czekają %n nowsze pytania</numerusform><numerusform>Czeka %n nowszych pytań</numerusform></translation></message>
<message numerus="yes"><source>%n newer rounds are waiting</source><translation><numerusform>Czeka %n nowsza runda</numerusform><numerusform>Czekają %n nowsze rundy</numerusform><numerusform>Czeka %n nowszych rund</numerusform></translation></message>
<message numerus="yes"><source>%n of %1 computers train with you</source><translation><numerusform>%n z %1 komputerów trenuje z Tobą</numerusform><numerusform>%n z %1 komputerów trenują z Tobą</numerusform><numerusform>%n z %1 komputerów trenuje z Tobą</numerusform></translation></message>
<message numerus="yes"><source>%n of %1 peers match</source><translation><numerusform>%n z %1 peerów pasuje</numerusform><numerusform>%n z %1 peerów pasują</numerusform><numerusform>%n z %1 peerów pasuje</numerusform></translation></message>
<message numerus="yes"><source>%n on your network</source><translation><numerusform>%n w Twojej sieci</numerusform><numerusform>%n w Twojej sieci</numerusform><numerusform>%n w Twojej sieci</numerusform></translation></message>
<message numerus="yes"><source>%n other questions</source><translation><numerusform>%n inne pytanie</numerusform><numerusform>%n inne pytania</numerusform><numerusform>%n innych pytań</numerusform></translation></message>
<message numerus="yes"><source>%n peers</source><translation><numerusform>%n peer</numerusform><numerusform>%n peery</numerusform><numerusform>%n peerów</numerusform></translation></message>
<message numerus="yes"><source>%n questions</source><translation><numerusform>%n pytanie</numerusform><numerusform>%n pytania</numerusform><numerusform>%n pytań</numerusform></translation></message>
<message numerus="yes"><source>%n questions are longer than your model can read.</source><translation><numerusform>%n pytanie jest dłuższe, niż Twój model potrafi przeczytać.</numerusform><numerusform>%n pytania są dłuższe, niż Twój model potrafi przeczytać.</numerusform><numerusform>%n pytań jest dłuższych, niż Twój model potrafi przeczytać.</numerusform></translation></message>
<message numerus="yes"><source>%n questions of its own</source><translation><numerusform>%n własnego pytania</numerusform><numerusform>%n własnych pytań</numerusform><numerusform>%n własnych pytań</numerusform></translation></message>
<message numerus="yes"><source>%n repeated</source><translation><numerusform>%n powtórzenie</numerusform><numerusform>%n powtórzenia</numerusform><numerusform>%n powtórzeń</numerusform></translation></message>
<message numerus="yes"><source>%n rounds</source><translation><numerusform>%n runda</numerusform><numerusform>%n rundy</numerusform><numerusform>%n rund</numerusform></translation></message>
<message numerus="yes"><source>%n rounds trained here</source><translation><numerusform>%n runda treningu</numerusform><numerusform>%n rundy treningu</numerusform><numerusform>%n rund treningu</numerusform></translation></message>
<message numerus="yes"><source>%n rules can't be checked on this computer, so they're ignored.</source><translation><numerusform>%n reguły nie da się sprawdzić na tym komputerze, więc jest pomijana.</numerusform><numerusform>%n reguł nie da się sprawdzić na tym komputerze, więc są pomijane.</numerusform><numerusform>%n reguł nie da się sprawdzić na tym komputerze, więc są pomijane.</numerusform></translation></message>
<message numerus="yes"><source>%n settings</source><translation><numerusform>%n ustawienie</numerusform><numerusform>%n ustawienia</numerusform><numerusform>%n ustawień</numerusform></translation></message>
<message numerus="yes"><source>%n specialties chosen</source><translation><numerusform>Wybrano %n specjalność</numerusform><numerusform>Wybrano %n specjalności</numerusform><numerusform>Wybrano %n specjalności</numerusform></translation></message>
<message numerus="yes"><source>%n taught nothing new</source><translation><numerusform>%n nie uczył niczego nowego</numerusform><numerusform>%n nie uczyły niczego nowego</numerusform><numerusform>%n nie uczyło niczego nowego</numerusform></translation></message>
<message numerus="yes"><source>%n taught one answer more often than the questions have it</source><translation><numerusform>%n uczył jednej odpowiedzi częściej, niż wynika to z pytań</numerusform><numerusform>%n uczyły jednej odpowiedzi częściej, niż wynika to z pytań</numerusform><numerusform>%n uczyło jednej odpowiedzi częściej, niż wynika to z pytań</numerusform></translation></message>
<message numerus="yes"><source>%n through a relay</source><translation><numerusform>%n przez przekaźnik</numerusform><numerusform>%n przez przekaźnik</numerusform><numerusform>%n przez przekaźnik</numerusform></translation></message>
<message numerus="yes"><source>%n tokens/s</source><translation><numerusform>%n token/s</numerusform><numerusform>%n tokeny/s</numerusform><numerusform>%n tokenów/s</numerusform></translation></message>
<message numerus="yes"><source>%n unreadable messages were ignored</source><translation><numerusform>Zignorowano %n nieczytelną wiadomość</numerusform><numerusform>Zignorowano %n nieczytelne wiadomości</numerusform><numerusform>Zignorowano %n nieczytelnych wiadomości</numerusform></translation></message>
<message numerus="yes"><source>%n were left out.</source><translation><numerusform>Pominięto %n.</numerusform><numerusform>Pominięto %n.</numerusform><numerusform>Pominięto %n.</numerusform></translation></message>
<message numerus="yes"><source>%n were more than the peer's share</source><translation><numerusform>%n ponad przydział peera</numerusform><numerusform>%n ponad przydział peera</numerusform><numerusform>%n ponad przydział peera</numerusform></translation></message>
<message numerus="yes"><source>%n were too long for your model</source><translation><numerusform>%n za długi dla Twojego modelu</numerusform><numerusform>%n za długie dla Twojego modelu</numerusform><numerusform>%n za długich dla Twojego modelu</numerusform></translation></message>
<message><source>(hivemind)</source><translation>(hivemind)</translation></message>
<message><source>(next after %1)</source><translation>(następny po %1)</translation></message>
<message><source>(nothing)</source><translation>(nic)</translation></message>
<message><source>, %1 less likely.</source><translation>, mniej prawdopodobne: %1.</translation></message>
<message><source>, %1 unknown lines skipped</source><translation>, pominięte nieznane wiersze: %1</translation></message>
<message numerus="yes"><source>, %n after sharing</source><translation><numerusform>, %n po dzieleniu się</numerusform><numerusform>, %n po dzieleniu się</numerusform><numerusform>, %n po dzieleniu się</numerusform></translation></message>
<message numerus="yes"><source>, %n of them through a relay</source><translation><numerusform>, w tym %n przez przekaźnik</numerusform><numerusform>, w tym %n przez przekaźnik</numerusform><numerusform>, w tym %n przez przekaźnik</numerusform></translation></message>
<message><source>, about %1 left</source><translation>, zostało około %1</translation></message>
<message><source>0 to 1; close answers count in part</source><translation>0 do 1; bliskie odpowiedzi liczą się częściowo</translation></message>
<message><source>1. Accept its licence on its page, with a free Hugging Face account.</source><translation>1. Przyjmij licencję na stronie modelu, z bezpłatnym kontem w Hugging Face.</translation></message>
<message><source>127.0.0.1: for this computer only. 0.0.0.0: for everybody who can reach it.</source><translation>127.0.0.1: tylko dla tego komputera. 0.0.0.0: dla wszystkich, którzy mogą się z nim połączyć.</translation></message>
<message><source>2. Paste an access token of that account, unless you gave one before.</source><translation>2. Wklej token dostępu tego konta, chyba że podano go już wcześniej.</translation></message>
<message><source>2. The engine runs on another computer. Run this in a terminal there, and paste an access token of that account:</source><translation>2. Silnik działa na innym komputerze. Uruchom tam to polecenie w terminalu i wklej token dostępu tego konta:</translation></message>
<message><source>24 tokens for the starter. For other models, Waggle measures what their answers need.</source><translation>24 tokeny dla startera. Przy innych modelach Waggle mierzy, ilu potrzebują ich odpowiedzi.</translation></message>
<message><source>8, or fewer if a round would take over two minutes.</source><translation>8 lub mniej, jeśli runda trwałaby ponad dwie minuty.</translation></message>
<message><source>95% interval</source><translation>Przedział ufności 95 %</translation></message>
<message><source>: %1 of %2 right</source><translation>: %1 z %2 dobrze</translation></message>
<message numerus="yes"><source>; %n took your examples</source><translation><numerusform>; %n wziął Twoje przykłady</numerusform><numerusform>; %n wzięły Twoje przykłady</numerusform><numerusform>; %n wzięło Twoje przykłady</numerusform></translation></message>
<message><source>&lt;answer&gt;…&lt;/answer&gt;: Waggle looks for the answer only in here.</source><translation>&lt;answer&gt;…&lt;/answer&gt;: Waggle szuka odpowiedzi tylko tutaj.</translation></message>
<message><source>A Hugging Face token, if you stored one, goes with `waggle token --forget`.</source><translation>Token Hugging Face, jeśli go zapisano, usunie `waggle token --forget`.</translation></message>
<message><source>A bee's dance on the comb, watched by four others</source><translation>Taniec pszczoły na plastrze, przygląda się jej czworo innych</translation></message>
<message><source>A charter has at most %1 files of questions.</source><translation>Najwięcej plików z pytaniami w karcie roju: %1.</translation></message>
<message><source>A charter names each level of a specialty once.</source><translation>Karta roju wymienia każdy poziom specjalności tylko raz.</translation></message>
<message><source>A charter names each specialty once.</source><translation>Karta roju wymienia każdą specjalność tylko raz.</translation></message>
<message><source>A charter's name, hint and titles are plain words on one line.</source><translation>Nazwa, wskazówka i tytuły w karcie roju to zwykłe słowa w jednym wierszu.</translation></message>
<message><source>A charter's smallest group is larger than its largest.</source><translation>Najmniejsza grupa w karcie roju jest większa niż największa.</translation></message>
<message><source>A completion cannot be judged.</source><translation>Nie da się ocenić jednej z odpowiedzi.</translation></message>
<message><source>A few questions come first, in the window.</source><translation>Najpierw kilka pytań, w oknie.</translation></message>
<message><source>A file may have %1 questions and %2 MiB. Leave some out.</source><translation>Plik może mieć najwyżej %1 pytań i %2 MiB. Usuń część z nich.</translation></message>
<message><source>A file may take %1 MiB. Leave some questions out, or shorten them.</source><translation>Plik może mieć najwyżej %1 MiB. Usuń część pytań albo je skróć.</translation></message>
<message><source>A first %1 unseen questions; band: margin of error</source><translation>Pierwsze nowe pytania: %1; pasmo błędu</translation></message>
<message><source>A folder for offline runs. Nothing is sent. Needs the Python package trackio.</source><translation>Folder na przebiegi offline. Nic nie jest wysyłane. Wymaga pakietu Pythona trackio.</translation></message>
<message><source>A folder for offline runs. Nothing is sent. Needs the Python package wandb.</source><translation>Folder na przebiegi offline. Nic nie jest wysyłane. Wymaga pakietu Pythona wandb.</translation></message>
<message><source>A folder to which the figures of rounds are written. Needs the Python package tensorboard.</source><translation>Folder, do którego zapisywane są dane z rund. Wymaga pakietu Pythona tensorboard.</translation></message>
<message><source>A good first model: it follows simple instructions.</source><translation>Dobry pierwszy model: wykonuje proste polecenia.</translation></message>
<message><source>A large model takes time to read, the first time most of all.</source><translation>Wczytanie dużego modelu trwa, zwłaszcza za pierwszym razem.</translation></message>
<message><source>A line on Home and on Models that you can dismiss.</source><translation>Wiersz na stronach Start i Modele, który możesz ukryć.</translation></message>
<message><source>A little reward for a wrong answer in its tags, so that a model learns to use them.</source><translation>Mała nagroda za błędną odpowiedź w znacznikach: dzięki niej model uczy się ich używać.</translation></message>
<message><source>A made-up name and a public key</source><translation>Zmyślone imię i klucz publiczny</translation></message>
<message><source>A model from a folder</source><translation>Model z folderu</translation></message>
<message><source>A name has 60 characters, a hint %1.</source><translation>Nazwa może mieć 60 znaków, a wskazówka %1.</translation></message>
<message><source>A page for browsers that shows how the swarm is doing.</source><translation>Strona do przeglądarki, która pokazuje, jak radzi sobie rój.</translation></message>
<message><source>A part of the journal is damaged, or another version of Waggle wrote it.</source><translation>Część dziennika jest uszkodzona albo zapisała ją inna wersja Waggle.</translation></message>
<message><source>A passphrase has at least %1 characters.</source><translation>Minimalna liczba znaków w haśle: %1.</translation></message>
<message><source>A peer</source><translation>Peer</translation></message>
<message><source>A picture is taken of a recorded run.</source><translation>Obraz można zrobić z nagranego przebiegu.</translation></message>
<message><source>A picture's name ends in .png, in a folder that is there.</source><translation>Nazwa obrazu kończy się na .png, a jego folder już istnieje.</translation></message>
<message><source>A program fills the screen.</source><translation>Jakiś program zajmuje cały ekran.</translation></message>
<message><source>A quantised model is trained with adapters only.</source><translation>Skwantowany model trenuje się tylko z adapterami.</translation></message>
<message><source>A quarter of them, at least 1</source><translation>Jedna czwarta z nich, co najmniej 1</translation></message>
<message><source>A question</source><translation>Pytanie</translation></message>
<message><source>A question cannot be made.</source><translation>Nie da się utworzyć pytania.</translation></message>
<message><source>A question for the swarm</source><translation>Pytanie dla roju</translation></message>
<message><source>A question it never trains on</source><translation>Pytanie, na którym nigdy nie trenuje</translation></message>
<message><source>A question with a model's answers. Peers share these.</source><translation>Pytanie z odpowiedziami modelu. Tym dzielą się uczestnicy.</translation></message>
<message><source>A recorded run cannot be changed.</source><translation>Nagranego przebiegu nie da się zmienić.</translation></message>
<message><source>A right answer: %1</source><translation>Poprawna odpowiedź: %1</translation></message>
<message numerus="yes"><source>A round asks %n questions</source><translation><numerusform>Runda zadaje %n pytanie</numerusform><numerusform>Runda zadaje %n pytania</numerusform><numerusform>Runda zadaje %n pytań</numerusform></translation></message>
<message><source>A saved state could not be read: %1</source><translation>Nie udało się odczytać zapisanego stanu: %1</translation></message>
<message><source>A setting is a truth value, a number, a text or a list.</source><translation>Ustawienie to wartość logiczna, liczba, tekst albo lista.</translation></message>
<message><source>A swarm cannot be made of this: %1.</source><translation>Z tego nie powstanie rój: %1.</translation></message>
<message><source>A swarm has at most four files of questions.</source><translation>Rój może mieć najwyżej cztery pliki z pytaniami.</translation></message>
<message><source>A swarm is a group of computers that practise the same specialties, such as fractions or logic.</source><translation>Rój to grupa komputerów, które ćwiczą te same specjalności, na przykład ułamki lub logikę.</translation></message>
<message><source>A swarm needs at least %1 different questions beside the tenth that is reserved for the exam. This file has %2, of which %3 are not reserved.</source><translation>Rój potrzebuje różnych pytań (co najmniej %1) poza jedną dziesiątą odłożoną na egzamin. W tym pliku pytań jest %2, z czego nieodłożonych %3.</translation></message>
<message><source>A swarm of your own</source><translation>Własny rój</translation></message>
<message><source>A transformers folder</source><translation>Folder transformers</translation></message>
<message><source>About as much as a laptop in %1</source><translation>Mniej więcej tyle, ile laptop przez %1</translation></message>
<message><source>Above 50%, the screen may stutter.</source><translation>Powyżej 50 % ekran może się zacinać.</translation></message>
<message><source>Accept it on https://huggingface.co/%1, then give Waggle a token of yours with `waggle token`.</source><translation>Zaakceptuj ją na https://huggingface.co/%1, a potem przekaż Waggle swój token poleceniem `waggle token`.</translation></message>
<message><source>Accept the licence of %1 first</source><translation>Najpierw zaakceptuj licencję %1</translation></message>
<message><source>Access token</source><translation>Token dostępu</translation></message>
<message><source>Adapters (LoRA) are trained</source><translation>Trening adapterów (LoRA)</translation></message>
<message><source>Adapters (LoRA) are trained over layers in 4 bits</source><translation>Trening adapterów (LoRA) na warstwach 4-bitowych</translation></message>
<message><source>Adaptive</source><translation>Adaptacyjnie</translation></message>
<message><source>Add a file of questions</source><translation>Dodaj plik z pytaniami</translation></message>
<message><source>Add a file of questions...</source><translation>Dodaj plik z pytaniami...</translation></message>
<message><source>Add some questions.</source><translation>Dodaj kilka pytań.</translation></message>
<message><source>Address of the status page</source><translation>Adres strony stanu</translation></message>
<message><source>Addresses of models look like huggingface.co/OWNER/NAME.</source><translation>Adresy modeli wyglądają tak: huggingface.co/OWNER/NAME.</translation></message>
<message><source>Advanced</source><translation>Zaawansowane</translation></message>
<message><source>After %1 your model earns a reward of %2; its first score on new questions is still to come</source><translation>Za Twoim modelem %1: zdobywa nagrodę %2, a pierwszy wynik na nowych pytaniach dopiero przed nim</translation></message>
<message><source>After %1 your model gets %2 of %3 new questions right, which suggests %4 to %5 of 100</source><translation>Za Twoim modelem %1: odpowiada dobrze na %2 z %3 nowych pytań, czyli szacunkowo od %4 do %5 na 100</translation></message>
<message><source>After %1 your model gets %2 of 100 new questions right</source><translation>Za Twoim modelem %1: odpowiada dobrze na %2 ze 100 nowych pytań</translation></message>
<message><source>After %1 your model gets %2 of 100 new questions right; it began at %3</source><translation>Za Twoim modelem %1: odpowiada dobrze na %2 ze 100 nowych pytań; na początku na %3</translation></message>
<message><source>After %1 your model gets %2 of 100 new questions right; on these questions it began at %3</source><translation>Za Twoim modelem %1: odpowiada dobrze na %2 ze 100 nowych pytań; na początku, przy tych samych pytaniach, na %3</translation></message>
<message numerus="yes"><source>After %n rounds</source><translation><numerusform>Po %n rundzie</numerusform><numerusform>Po %n rundach</numerusform><numerusform>Po %n rundach</numerusform></translation></message>
<message><source>After a day of work without a shortage, the next start tries larger parts. Closing other programs helps.</source><translation>Po dniu pracy bez braku pamięci następne uruchomienie spróbuje większych części. Pomaga zamknięcie innych programów.</translation></message>
<message><source>After an example</source><translation>Po przykładzie</translation></message>
<message><source>After an example, answer begun</source><translation>Po przykładzie, odpowiedź zaczęta</translation></message>
<message><source>After this round</source><translation>Po tej rundzie</translation></message>
<message><source>After you moved to another computer: this one makes itself a new name and key, and keeps the old key file. One key must never run on two computers at once: peers would take them for one.</source><translation>Po przeprowadzce na inny komputer: ten utworzy sobie nowe imię i klucz, a stary plik klucza zachowa. Jeden klucz nie może nigdy działać na dwóch komputerach naraz: peery wzięłyby je za jeden.</translation></message>
<message><source>Algorithms</source><translation>Algorytmy</translation></message>
<message><source>Alice's family</source><translation>Rodzina Alicji</translation></message>
<message><source>All</source><translation>Wszystkie</translation></message>
<message><source>All answers</source><translation>Wszystkie odpowiedzi</translation></message>
<message><source>All hours</source><translation>Wszystkie godziny</translation></message>
<message><source>All is as it was before.</source><translation>Wszystko jest tak jak przedtem.</translation></message>
<message><source>All rounds as a table</source><translation>Wszystkie rundy w tabeli</translation></message>
<message><source>All settings fit on a page: is this the right file?</source><translation>Wszystkie ustawienia mieszczą się na jednej stronie: czy to właściwy plik?</translation></message>
<message><source>All specialties</source><translation>Wszystkie specjalności</translation></message>
<message><source>All times, days and your week are told as they are there.</source><translation>Wszystkie godziny, dni i twój tydzień są podane tak jak tam.</translation></message>
<message><source>All weights</source><translation>Wszystkie wagi</translation></message>
<message><source>All weights are trained</source><translation>Trening wszystkich wag</translation></message>
<message><source>All weights are trained with little memory</source><translation>Trening wszystkich wag przy małym zużyciu pamięci</translation></message>
<message><source>All weights, if memory allows</source><translation>Wszystkie wagi, jeśli starczy pamięci</translation></message>
<message><source>All weights, saving memory</source><translation>Wszystkie wagi, oszczędzając pamięć</translation></message>
<message><source>All: each model asks most at the level where it learns most.</source><translation>Wszystkie: każdy model zadaje najwięcej pytań na poziomie, na którym najwięcej się uczy.</translation></message>
<message><source>Allow again</source><translation>Dopuść ponownie</translation></message>
<message><source>Allow longer answers</source><translation>Pozwól na dłuższe odpowiedzi</translation></message>
<message><source>Allowing…</source><translation>Dopuszczanie…</translation></message>
<message><source>Alone</source><translation>Samodzielnie</translation></message>
<message><source>Alone leads, %1 to %2</source><translation>Samodzielność prowadzi, %1 do %2</translation></message>
<message><source>Also on this computer</source><translation>Także na tym komputerze</translation></message>
<message><source>Always</source><translation>Zawsze</translation></message>
<message><source>Always through gateways</source><translation>Zawsze przez bramy</translation></message>
<message><source>An adapter (LoRA)</source><translation>Adapter (LoRA)</translation></message>
<message><source>An adapter needs much less memory than all weights, and learns a little less.</source><translation>Adapter potrzebuje znacznie mniej pamięci niż wszystkie wagi i uczy się trochę mniej.</translation></message>
<message><source>An adapter, 4-bit model (QLoRA)</source><translation>Adapter, model 4-bitowy (QLoRA)</translation></message>
<message><source>An answer is still being written.</source><translation>Odpowiedź jeszcze powstaje.</translation></message>
<message><source>An invite link</source><translation>Link z zaproszeniem</translation></message>
<message><source>An untrained model wrote this, in eight tries:</source><translation>Tak napisał niewytrenowany model w ośmiu próbach:</translation></message>
<message><source>Announcement</source><translation>Ogłoszenie</translation></message>
<message><source>Another computer takes part with this node's identity, and the two hold each other back.</source><translation>Inny komputer używa tożsamości tego węzła i oba sobie przeszkadzają.</translation></message>
<message><source>Another computer that trains in your swarm.</source><translation>Inny komputer, który trenuje w Twoim roju.</translation></message>
<message><source>Another engine is running for this folder.</source><translation>W tym folderze działa już inny silnik.</translation></message>
<message><source>Another engine, or a seed, is running for this folder.</source><translation>W tym folderze działa już inny silnik albo węzeł startowy.</translation></message>
<message><source>Another model was chosen meanwhile.</source><translation>W międzyczasie wybrano inny model.</translation></message>
<message><source>Another question</source><translation>Inne pytanie</translation></message>
<message><source>Another swarm cannot be chosen now.</source><translation>Nie można teraz wybrać innego roju.</translation></message>
<message><source>Another table is still being saved.</source><translation>Trwa jeszcze zapisywanie innej tabeli.</translation></message>
<message><source>Answer</source><translation>Odpowiedz</translation></message>
<message><source>Answer %1</source><translation>Odpowiedź %1</translation></message>
<message><source>Answer tag</source><translation>Znacznik odpowiedzi</translation></message>
<message><source>Answers</source><translation>Odpowiedzi</translation></message>
<message><source>Answers are plain values, or one list or object of them.</source><translation>Odpowiedzi to proste wartości albo jedna ich lista lub jeden obiekt.</translation></message>
<message><source>Answers not verified</source><translation>Odpowiedzi niesprawdzone</translation></message>
<message><source>Answers not verified (%1): its answer keys could not be checked independently; its scorer was tested with altered answers.</source><translation>Odpowiedzi niesprawdzone (%1): nie dało się ich niezależnie sprawdzić; ocenianie przetestowano na zmienionych odpowiedziach.</translation></message>
<message><source>Answers not verified: its answer keys could not be checked independently; its scorer was tested with altered answers.</source><translation>Odpowiedzi niesprawdzone: nie dało się ich niezależnie sprawdzić; ocenianie przetestowano na zmienionych odpowiedziach.</translation></message>
<message><source>Answers to each question</source><translation>Odpowiedzi na każde pytanie</translation></message>
<message><source>Answers, checks and the log</source><translation>Odpowiedzi, sprawdzenia i dziennik</translation></message>
<message><source>Any text may hold the stop token of the model in %1.</source><translation>Każdy tekst może zawierać token końca modelu z %1.</translation></message>
<message><source>Any time.</source><translation>O każdej porze.</translation></message>
<message><source>Any; small ones do best with easy questions</source><translation>Dowolny; małym najlepiej idą łatwe pytania</translation></message>
<message><source>Appearance and startup</source><translation>Wygląd i start</translation></message>
<message><source>Applies from the next start.</source><translation>Zadziała od następnego uruchomienia.</translation></message>
<message><source>Apr</source><translation>kwi</translation></message>
<message><source>Are shared</source><translation>Są udostępniane</translation></message>
<message><source>Arithmetic</source><translation>Arytmetyka</translation></message>
<message><source>As needed</source><translation>W miarę potrzeb</translation></message>
<message><source>As published</source><translation>Jak w publikacji</translation></message>
<message><source>As usual for the model</source><translation>Jak zwykle przy tym modelu</translation></message>
<message><source>Ask a member for an invite: its link carries the key.</source><translation>Poproś członka o zaproszenie: jego link zawiera klucz.</translation></message>
<message><source>Ask again when it runs.</source><translation>Zapytaj ponownie, gdy będzie działać.</translation></message>
<message><source>Ask as who started it, or name its folder with --home.</source><translation>Zapytaj z konta, z którego go uruchomiono, albo podaj jego folder przez --home.</translation></message>
<message><source>Ask for an invite from a member whose node lends its web port.</source><translation>Poproś o zaproszenie kogoś z roju, czyj węzeł udostępnia port WWW.</translation></message>
<message><source>Ask for another one.</source><translation>Poproś o inne.</translation></message>
<message><source>Ask for it again, or take a screenshot of it.</source><translation>Poproś o nie jeszcze raz albo zrób zrzut ekranu.</translation></message>
<message><source>Ask for the code of a Waggle invite, or for its link.</source><translation>Poproś o kod zaproszenia do Waggle albo o jego link.</translation></message>
<message><source>Ask for the invite again: it was probably damaged.</source><translation>Poproś o zaproszenie jeszcze raz: pewnie się uszkodziło.</translation></message>
<message><source>Ask for the link again, and copy it whole.</source><translation>Poproś o link jeszcze raz i skopiuj go w całości.</translation></message>
<message><source>Ask it in another way</source><translation>Pytaj inaczej</translation></message>
<message><source>Ask me the first time</source><translation>Zapytaj za pierwszym razem</translation></message>
<message><source>Ask more questions a round</source><translation>Więcej pytań na rundę</translation></message>
<message><source>Ask the model</source><translation>Zapytaj model</translation></message>
<message><source>Ask the router to let others in</source><translation>Poproś router, by wpuszczał innych</translation></message>
<message><source>Ask this network's operator, or choose another proxy, or none.</source><translation>Zapytaj administratora tej sieci albo wybierz inne proxy, albo żadne.</translation></message>
<message><source>Ask whoever created the swarm: the file has to be made anew with this Waggle.</source><translation>Poproś osobę, która utworzyła rój: plik trzeba utworzyć na nowo w tej wersji Waggle.</translation></message>
<message><source>Asked %1, because %2 of %3 answers could be read that way.</source><translation>Pytania dostaje %1, bo tak dało się odczytać %2 z %3 odpowiedzi.</translation></message>
<message><source>Asked %1, but no answer could be read, whichever way it was asked.</source><translation>Pytania dostaje %1, ale żadnej odpowiedzi nie dało się odczytać, jakkolwiek pytać.</translation></message>
<message><source>Asked %1, which worked best, but only %2 of %3 answers could be read that way.</source><translation>Pytania dostaje %1. To działało najlepiej, ale i tak dało się odczytać tylko %2 z %3 odpowiedzi.</translation></message>
<message><source>Asked %1.</source><translation>Pytania dostaje %1.</translation></message>
<message><source>Asked as you chose: %1.</source><translation>Pytania dostaje zgodnie z Twoim wyborem: %1.</translation></message>
<message><source>Asking the computers that the link names; a few seconds.</source><translation>Odpytywanie komputerów wskazanych w linku; kilka sekund.</translation></message>
<message><source>At least 8 characters; four words nobody would guess are good.</source><translation>Co najmniej 8 znaków; dobre są cztery słowa, których nikt nie zgadnie.</translation></message>
<message><source>At most %1 specialties.</source><translation>Najwyżej %1 specjalności.</translation></message>
<message><source>At most every ten minutes each model answers the same 16 questions, which nobody trains on. Every answer is marked again on this computer. Which model wrote it is what each computer says of itself.</source><translation>Najwyżej co dziesięć minut każdy model odpowiada na te same 16 pytań, na których nikt nie trenuje. Każda odpowiedź jest ponownie oceniana na tym komputerze. To, który model ją napisał, każdy komputer podaje sam.</translation></message>
<message><source>At your price of %1 for a kWh that is %2 today and %3 in all.</source><translation>Przy Twojej cenie %1 za kWh to dziś %2, a łącznie %3.</translation></message>
<message><source>Aug</source><translation>sie</translation></message>
<message><source>Automatic</source><translation>Automatycznie</translation></message>
<message><source>Automatic tries each form once and keeps the one with the most readable answers.</source><translation>„Automatycznie” próbuje raz każdej formy i zostaje przy tej, która daje najwięcej czytelnych odpowiedzi.</translation></message>
<message><source>Back</source><translation>Wstecz</translation></message>
<message><source>Back up</source><translation>Utwórz kopię</translation></message>
<message><source>Back up your identity</source><translation>Utwórz kopię swojej tożsamości</translation></message>
<message><source>Balanced</source><translation>Zrównoważone</translation></message>
<message><source>Base conversion</source><translation>Systemy liczbowe</translation></message>
<message><source>Become %1</source><translation>Przyjmij tożsamość %1</translation></message>
<message><source>Before any training</source><translation>Przed treningiem</translation></message>
<message><source>Before its first round your model gets %2 of %3 new questions right, which suggests %4 to %5 of 100</source><translation>Przed pierwszą rundą Twój model odpowiada dobrze na %2 z %3 nowych pytań, czyli szacunkowo od %4 do %5 na 100</translation></message>
<message><source>Before its first round your model gets %2 of 100 new questions right</source><translation>Przed pierwszą rundą Twój model odpowiada dobrze na %2 ze 100 nowych pytań</translation></message>
<message><source>Below 100% it rests between steps.</source><translation>Poniżej 100 % odpoczywa między krokami.</translation></message>
<message><source>Below: round %1, the last one before that.</source><translation>Poniżej: runda %1, ostatnia przed tym.</translation></message>
<message><source>Binary alternation</source><translation>Naprzemienne zera i jedynki</translation></message>
<message><source>Blind test: guess which is which</source><translation>Ślepy test: zgadnij, co jest czym</translation></message>
<message><source>Block</source><translation>Zablokuj</translation></message>
<message><source>Block: it gets nothing from you either.</source><translation>Zablokuj: niczego też od Ciebie nie dostanie.</translation></message>
<message><source>Blocked</source><translation>Zablokowany</translation></message>
<message><source>Blocking…</source><translation>Blokowanie…</translation></message>
<message><source>Both answered the same.</source><translation>Oba odpowiedziały tak samo.</translation></message>
<message><source>Both curves appear here</source><translation>Tu pojawią się obie krzywe</translation></message>
<message><source>Both use reasoning-gym %1. Install Waggle again, or ask whoever wrote the charter.</source><translation>Oba używają reasoning-gym %1. Zainstaluj Waggle ponownie albo zapytaj autora karty roju.</translation></message>
<message><source>Brisk Otter</source><translation>Brisk Otter</translation></message>
<message><source>By each computer's last hour of answers; self-reported.</source><translation>Według odpowiedzi każdego komputera z ostatniej godziny; dane własne komputerów.</translation></message>
<message><source>By own probability</source><translation>Według własnego prawdopodobieństwa</translation></message>
<message><source>CUDA</source><translation>CUDA</translation></message>
<message><source>CUDA cannot be removed: %1.</source><translation>Nie da się usunąć CUDA: %1.</translation></message>
<message><source>CUDA cannot be written to the disk: %1.</source><translation>Nie da się zapisać CUDA na dysku: %1.</translation></message>
<message><source>CUDA is being downloaded by another window of Waggle.</source><translation>Inne okno Waggle właśnie pobiera CUDA.</translation></message>
<message><source>CUDA is here, but it finds no graphics card that it can use: its driver may be too old, 580 is needed</source><translation>CUDA jest, ale nie znajduje karty graficznej, której mogłaby użyć: sterownik może być za stary, potrzebny jest 580</translation></message>
<message><source>CUDA is installed. Waggle uses it from its next start.</source><translation>CUDA jest zainstalowana. Waggle użyje jej od następnego uruchomienia.</translation></message>
<message><source>CUDA needs %1 GB more, and the disk has %2 GB free.</source><translation>CUDA potrzebuje jeszcze %1 GB, a na dysku wolne jest %2 GB.</translation></message>
<message><source>Caches</source><translation>Pamięć podręczna</translation></message>
<message><source>Caesar cipher</source><translation>Szyfr Cezara</translation></message>
<message><source>Calendar</source><translation>Kalendarz</translation></message>
<message><source>Calendar of your days; arrow keys read it day by day</source><translation>Kalendarz Twoich dni; strzałki odczytują go dzień po dniu</translation></message>
<message><source>Can it use more of my computer, or less?</source><translation>Czy może używać więcej albo mniej mojego komputera?</translation></message>
<message><source>Can't tell</source><translation>Trudno powiedzieć</translation></message>
<message><source>Cancel</source><translation>Anuluj</translation></message>
<message><source>Cancel the download first.</source><translation>Najpierw anuluj pobieranie.</translation></message>
<message><source>Cancelling A and B</source><translation>Skracanie A i B</translation></message>
<message><source>Cannot be held off</source><translation>Nie da się wstrzymać</translation></message>
<message><source>Chain sum</source><translation>Suma łańcuchowa</translation></message>
<message><source>Change it, or delete the question.</source><translation>Zmień je albo usuń to pytanie.</translation></message>
<message><source>Change rule</source><translation>Zmień regułę</translation></message>
<message><source>Change the limit</source><translation>Zmień limit</translation></message>
<message><source>Change them on the page Settings.</source><translation>Zmień je na stronie Ustawienia.</translation></message>
<message><source>Changes take effect immediately</source><translation>Zmiany działają od razu</translation></message>
<message><source>Charts</source><translation>Wykresy</translation></message>
<message><source>Charts appear after the first round</source><translation>Wykresy pojawią się po pierwszej rundzie</translation></message>
<message><source>Charts: go to the next point; with Shift, move the view</source><translation>Wykresy: przejdź do następnego punktu; z klawiszem Shift przesuń widok</translation></message>
<message><source>Charts: zoom in or out, or show the whole run</source><translation>Wykresy: powiększ, pomniejsz albo pokaż cały przebieg</translation></message>
<message><source>Chat</source><translation>Rozmowa</translation></message>
<message><source>Check</source><translation>Sprawdź</translation></message>
<message><source>Check `model.folder` in the settings, or remove it to use the starter.</source><translation>Sprawdź `model.folder` w ustawieniach albo usuń, aby użyć startera.</translation></message>
<message><source>Check `swarm.charter` in the settings.</source><translation>Sprawdź `swarm.charter` w ustawieniach.</translation></message>
<message><source>Check a backup</source><translation>Sprawdź kopię zapasową</translation></message>
<message><source>Check for updates</source><translation>Sprawdź aktualizacje</translation></message>
<message><source>Check its name, and who owns it.</source><translation>Sprawdź nazwę i właściciela.</translation></message>
<message><source>Check its name; for a private one, give Waggle a token with `waggle token`.</source><translation>Sprawdź nazwę; jeśli jest prywatny, przekaż Waggle token poleceniem `waggle token`.</translation></message>
<message><source>Check its path, and whether its disk is connected.</source><translation>Sprawdź ścieżkę i to, czy dysk jest podłączony.</translation></message>
<message><source>Check its path.</source><translation>Sprawdź ścieżkę.</translation></message>
<message><source>Check the connection, then search again.</source><translation>Sprawdź połączenie i wyszukaj ponownie.</translation></message>
<message><source>Check the internet connection, and try again later.</source><translation>Sprawdź połączenie z internetem i spróbuj później.</translation></message>
<message><source>Check the internet connection, or ask for a newer invite.</source><translation>Sprawdź połączenie z internetem albo poproś o nowsze zaproszenie.</translation></message>
<message><source>Check the internet connection, or ask for another gateway.</source><translation>Sprawdź połączenie z internetem albo poproś o inną bramę.</translation></message>
<message><source>Check this computer's clock. A network that looks into connections needs its certificate in SSL_CERT_FILE.</source><translation>Sprawdź zegar tego komputera. Sieć, która zagląda w połączenia, wymaga swojego certyfikatu w SSL_CERT_FILE.</translation></message>
<message><source>Check who owns it.</source><translation>Sprawdź, do kogo należy.</translation></message>
<message><source>Checked by one program only: there is no second way to check these answers.</source><translation>Sprawdzone tylko przez jeden program: tych odpowiedzi nie da się sprawdzić w drugi sposób.</translation></message>
<message><source>Checking %1</source><translation>Sprawdzanie %1</translation></message>
<message><source>Checking.</source><translation>Sprawdzanie.</translation></message>
<message><source>Checkpoints, their journal, and the album of earlier moments.</source><translation>Zapisane stany, ich dziennik i album wcześniejszych momentów.</translation></message>
<message><source>Choose</source><translation>Wybierz</translation></message>
<message><source>Choose %1, which it was made from.</source><translation>Wybierz %1, czyli źródło tego modelu.</translation></message>
<message><source>Choose Invite someone on Peers or Swarms, then send the link or let them scan the code.</source><translation>Na stronie Peery lub Roje naciśnij „Zaproś”. Wyślij link albo daj zeskanować kod.</translation></message>
<message><source>Choose a complete transformers folder.</source><translation>Wybierz kompletny folder transformers.</translation></message>
<message><source>Choose a complete transformers model.</source><translation>Wybierz kompletny model transformers.</translation></message>
<message><source>Choose a file of JSON lines or CSV.</source><translation>Wybierz plik JSON lines lub CSV.</translation></message>
<message><source>Choose a file.</source><translation>Wybierz plik.</translation></message>
<message><source>Choose a folder on another disk.</source><translation>Wybierz folder na innym dysku.</translation></message>
<message><source>Choose a folder on the same disk.</source><translation>Wybierz folder na tym samym dysku.</translation></message>
<message><source>Choose a model with .safetensors files.</source><translation>Wybierz model z plikami .safetensors.</translation></message>
<message><source>Choose a model with a tokenizer.json.</source><translation>Wybierz model z plikiem tokenizer.json.</translation></message>
<message><source>Choose a new folder: nothing is ever overwritten.</source><translation>Wybierz nowy folder: nic nigdy nie jest nadpisywane.</translation></message>
<message><source>Choose a plain model.</source><translation>Wybierz zwykły model.</translation></message>
<message><source>Choose a shorter path.</source><translation>Wybierz krótszą ścieżkę.</translation></message>
<message><source>Choose a smaller model, close other programs, or let Waggle use more memory in Settings.</source><translation>Wybierz mniejszy model, zamknij inne programy albo pozwól Waggle w ustawieniach używać więcej pamięci.</translation></message>
<message><source>Choose a smaller model, or close other programs.</source><translation>Wybierz mniejszy model albo zamknij inne programy.</translation></message>
<message><source>Choose a swarm</source><translation>Wybierz rój</translation></message>
<message><source>Choose a swarm, and switch training alone off, to train with others.</source><translation>Aby trenować z innymi, wybierz rój i wyłącz samodzielny trening.</translation></message>
<message><source>Choose again on the page Peers. The old file is kept beside it; its name begins with standings.damaged.</source><translation>Wybierz ponownie na stronie Peery. Stary plik leży obok; jego nazwa zaczyna się od standings.damaged.</translation></message>
<message><source>Choose another address or port.</source><translation>Wybierz inny adres lub port.</translation></message>
<message><source>Choose another address.</source><translation>Wybierz inny adres.</translation></message>
<message><source>Choose another language model from Hugging Face.</source><translation>Wybierz inny model językowy z Hugging Face.</translation></message>
<message><source>Choose another language model that mlx-lm can open.</source><translation>Wybierz inny model językowy, który potrafi otworzyć mlx-lm.</translation></message>
<message><source>Choose another model</source><translation>Wybierz inny model</translation></message>
<message><source>Choose another model there first.</source><translation>Najpierw wybierz tam inny model.</translation></message>
<message><source>Choose another model, or other specialties.</source><translation>Wybierz inny model albo inne specjalności.</translation></message>
<message><source>Choose another model, or this one once more.</source><translation>Wybierz inny model albo ten jeszcze raz.</translation></message>
<message><source>Choose another model.</source><translation>Wybierz inny model.</translation></message>
<message><source>Choose another moment.</source><translation>Wybierz inny moment.</translation></message>
<message><source>Choose another name.</source><translation>Wybierz inną nazwę.</translation></message>
<message><source>Choose another name: nothing is overwritten.</source><translation>Wybierz inną nazwę: nic nie jest nadpisywane.</translation></message>
<message><source>Choose another on the page Models.</source><translation>Wybierz inny na stronie Modele.</translation></message>
<message><source>Choose another one first.</source><translation>Najpierw wybierz inny.</translation></message>
<message><source>Choose another one in Settings, or mend the file.</source><translation>Wybierz coś innego w Ustawieniach albo popraw plik.</translation></message>
<message><source>Choose another place.</source><translation>Wybierz inne miejsce.</translation></message>
<message><source>Choose another revision of it.</source><translation>Wybierz inną rewizję.</translation></message>
<message><source>Choose another web.port, or 0: none.</source><translation>Wybierz inny web.port albo 0: żaden.</translation></message>
<message><source>Choose another with --home.</source><translation>Wybierz inny przez --home.</translation></message>
<message><source>Choose at least one specialty, or add questions of your own.</source><translation>Wybierz co najmniej jedną specjalność albo dodaj własne pytania.</translation></message>
<message><source>Choose hours</source><translation>Wybierz godziny</translation></message>
<message><source>Choose one of its specialties.</source><translation>Wybierz jedną z jego specjalności.</translation></message>
<message><source>Choose one of them, such as %1.</source><translation>Wybierz jedną z nich, na przykład %1.</translation></message>
<message><source>Choose one of: %1.</source><translation>Wybierz jedno z: %1.</translation></message>
<message><source>Choose that model again, or start afresh.</source><translation>Wybierz tamten model ponownie albo zacznij od nowa.</translation></message>
<message><source>Choose the model in MLX's 4-bit form, or set model.training to lora.</source><translation>Wybierz model w 4-bitowej postaci MLX albo ustaw model.training na lora.</translation></message>
<message><source>Choose the model itself, or a commit of it.</source><translation>Wybierz sam model albo jego commit.</translation></message>
<message><source>Choose the model that it was made from.</source><translation>Wybierz model, z którego powstał.</translation></message>
<message><source>Choose the model that this computer trains</source><translation>Wybierz model, który trenuje ten komputer</translation></message>
<message><source>Chosen hours</source><translation>Wybrane godziny</translation></message>
<message><source>Clear</source><translation>Wyczyść</translation></message>
<message><source>Clear the search</source><translation>Wyczyść wyszukiwanie</translation></message>
<message><source>Clear this conversation to compare with another moment.</source><translation>Wyczyść tę rozmowę, aby porównać z innym momentem.</translation></message>
<message><source>Clever Wren</source><translation>Clever Wren</translation></message>
<message><source>Close Waggle</source><translation>Zamknij Waggle</translation></message>
<message><source>Close every double quote; write one within a text as "".</source><translation>Zamknij każdy podwójny cudzysłów; wewnątrz tekstu zapisz go jako "".</translation></message>
<message><source>Close it and open it again, so that all parts fit together. What your model has learned is saved.</source><translation>Zamknij go i otwórz ponownie, żeby wszystkie części do siebie pasowały. To, czego nauczył się Twój model, jest zapisane.</translation></message>
<message><source>Close it, or choose another port.</source><translation>Zamknij go albo wybierz inny port.</translation></message>
<message><source>Close other programs, or lower learning.group_size.</source><translation>Zamknij inne programy albo zmniejsz learning.group_size.</translation></message>
<message><source>Close other programs, or lower the longest answer in Settings.</source><translation>Zamknij inne programy albo skróć w ustawieniach najdłuższą odpowiedź.</translation></message>
<message><source>Close other programs, or raise the limit of open files (ulimit -n).</source><translation>Zamknij inne programy albo zwiększ limit otwartych plików (ulimit -n).</translation></message>
<message><source>Close other programs, then race again.</source><translation>Zamknij inne programy i uruchom wyścig ponownie.</translation></message>
<message><source>Close other programs, then try again.</source><translation>Zamknij inne programy i spróbuj ponownie.</translation></message>
<message><source>Close other programs.</source><translation>Zamknij inne programy.</translation></message>
<message><source>Close that window first.</source><translation>Najpierw zamknij tamto okno.</translation></message>
<message><source>Close the other program, or choose another port (0: any free one).</source><translation>Zamknij ten drugi program albo wybierz inny port (0: dowolny wolny).</translation></message>
<message><source>Close the program that uses it, then try again.</source><translation>Zamknij program, który go używa, i spróbuj ponownie.</translation></message>
<message><source>Close the window</source><translation>Zamknij okno</translation></message>
<message><source>Closing; training keeps running.</source><translation>Zamykanie; trening działa dalej.</translation></message>
<message><source>Collapse guard</source><translation>Ochrona przed załamaniem</translation></message>
<message><source>Comes with Waggle</source><translation>W zestawie z Waggle</translation></message>
<message><source>Compare</source><translation>Porównaj</translation></message>
<message><source>Compare models</source><translation>Porównaj modele</translation></message>
<message><source>Compare with training alone</source><translation>Porównaj z treningiem w pojedynkę</translation></message>
<message><source>Compared with</source><translation>W porównaniu z</translation></message>
<message><source>Compared with: %1</source><translation>W porównaniu z: %1</translation></message>
<message><source>Comparing numbers</source><translation>Porównywanie liczb</translation></message>
<message><source>Computers that train on the same questions and share their answers.</source><translation>Komputery, które trenują na tych samych pytaniach i dzielą się odpowiedziami.</translation></message>
<message><source>Computers that train with you appear here</source><translation>Tu pojawią się komputery, które trenują z Tobą</translation></message>
<message><source>Computers to ask first for others. Separated by commas.</source><translation>Komputery pytane najpierw o inne. Oddzielone przecinkami.</translation></message>
<message><source>Computers whose network lets only the web through can take part through this one, at the same port.</source><translation>Komputery, których sieć przepuszcza tylko ruch WWW, mogą uczestniczyć przez ten, na tym samym porcie.</translation></message>
<message><source>Connect the disk again, or choose another place.</source><translation>Podłącz dysk ponownie albo wybierz inne miejsce.</translation></message>
<message><source>Connected to the swarm</source><translation>Połączono z rojem</translation></message>
<message><source>Connected, and at least one of you learns from the other.</source><translation>Połączone, a przynajmniej jedno z was uczy się od drugiego.</translation></message>
<message><source>Connecting</source><translation>Łączenie</translation></message>
<message><source>Connection</source><translation>Połączenie</translation></message>
<message><source>Connection details</source><translation>Szczegóły połączenia</translation></message>
<message><source>Continue</source><translation>Dalej</translation></message>
<message><source>Continue the download</source><translation>Wznów pobieranie</translation></message>
<message><source>Continues %1 min after you stop using the computer.</source><translation>Wznowi się po %1 min od ostatniego użycia komputera.</translation></message>
<message><source>Continues then, or when you resume.</source><translation>Wznowi się wtedy albo na Twoje polecenie.</translation></message>
<message><source>Continues when you resume.</source><translation>Wznowi się na Twoje polecenie.</translation></message>
<message><source>Continues when you resume: this computer does not tell whether you are using it.</source><translation>Wznowi się na Twoje polecenie: ten komputer nie zdradza, czy go używasz.</translation></message>
<message><source>Contribute anyway</source><translation>Pracuj mimo to</translation></message>
<message><source>Converting %1</source><translation>Konwersja %1</translation></message>
<message><source>Converting %1: %2%</source><translation>Konwersja %1: %2 %</translation></message>
<message><source>Copied</source><translation>Skopiowano</translation></message>
<message><source>Copy</source><translation>Kopiuj</translation></message>
<message><source>Copy %1</source><translation>Kopia %1</translation></message>
<message><source>Copy %1 learned from copy %2: %3</source><translation>Kopia %1 nauczyła się od kopii %2: %3</translation></message>
<message><source>Copy address</source><translation>Kopiuj adres</translation></message>
<message><source>Copy it whole: `waggle ctl peers` lists them.</source><translation>Skopiuj go w całości: listę pokaże `waggle ctl peers`.</translation></message>
<message><source>Copy link</source><translation>Kopiuj link</translation></message>
<message><source>Copy or download it again, or choose another model.</source><translation>Skopiuj lub pobierz go ponownie albo wybierz inny model.</translation></message>
<message><source>Copy or download it again.</source><translation>Skopiuj lub pobierz go ponownie.</translation></message>
<message><source>Copy or download the model again.</source><translation>Skopiuj lub pobierz model ponownie.</translation></message>
<message><source>Copy peer id</source><translation>Kopiuj identyfikator peera</translation></message>
<message><source>Copy question and answers</source><translation>Kopiuj pytanie i odpowiedzi</translation></message>
<message><source>Copy report</source><translation>Kopiuj raport</translation></message>
<message><source>Copy the address of the gateway %1 whole.</source><translation>Skopiuj cały adres bramy %1.</translation></message>
<message><source>Copy the model to a folder of yours.</source><translation>Skopiuj model do swojego folderu.</translation></message>
<message><source>Copy the report and send it to us.</source><translation>Skopiuj raport i wyślij go nam.</translation></message>
<message><source>Copy the report on the page Help and send it to us.</source><translation>Skopiuj raport ze strony Pomoc i wyślij go nam.</translation></message>
<message><source>Correct %1, or unset it.</source><translation>Popraw %1 albo usuń tę zmienną.</translation></message>
<message><source>Correct it, delete the question, or choose another way to grade.</source><translation>Popraw ją, usuń pytanie albo wybierz inny sposób oceny.</translation></message>
<message><source>Correct the file, or remove it.</source><translation>Popraw plik albo go usuń.</translation></message>
<message><source>Counting bits</source><translation>Liczenie bitów</translation></message>
<message><source>Counting primes</source><translation>Liczenie liczb pierwszych</translation></message>
<message><source>Course schedule</source><translation>Plan zajęć</translation></message>
<message><source>Create</source><translation>Utwórz</translation></message>
<message><source>Create a swarm</source><translation>Utwórz rój</translation></message>
<message><source>Created here</source><translation>Utworzony tutaj</translation></message>
<message><source>Credit for the answer tags</source><translation>Nagroda za znaczniki odpowiedzi</translation></message>
<message><source>Cryptarithm</source><translation>Kryptarytm</translation></message>
<message><source>Cut the code out of it, or take a screenshot.</source><translation>Wytnij z niego sam kod albo zrób zrzut ekranu.</translation></message>
<message><source>Dark</source><translation>Ciemny</translation></message>
<message><source>Dashed: the examples that peers offer.</source><translation>Linia przerywana: przykłady, które oferują peery.</translation></message>
<message><source>Date</source><translation>Data</translation></message>
<message><source>Day</source><translation>Dzień</translation></message>
<message><source>Dec</source><translation>gru</translation></message>
<message><source>Decimal chain sum</source><translation>Suma łańcuchowa z ułamkami dziesiętnymi</translation></message>
<message><source>Decimals</source><translation>Ułamki dziesiętne</translation></message>
<message><source>Default: %1</source><translation>Domyślnie: %1</translation></message>
<message><source>Delay</source><translation>Ping</translation></message>
<message><source>Delete it in one of the two files.</source><translation>Usuń je z jednego z dwóch plików.</translation></message>
<message><source>Delete one of the two, or make the questions different.</source><translation>Usuń jedno z dwóch albo zmień pytania, żeby się różniły.</translation></message>
<message><source>Details</source><translation>Szczegóły</translation></message>
<message><source>Details of %1</source><translation>Szczegóły: %1</translation></message>
<message><source>Deutsch</source><translation>Deutsch</translation></message>
<message><source>Device</source><translation>Urządzenie</translation></message>
<message><source>Device and memory</source><translation>Urządzenie i pamięć</translation></message>
<message><source>Dice</source><translation>Kości</translation></message>
<message><source>Difficulty</source><translation>Trudność</translation></message>
<message><source>Direct</source><translation>Bezpośrednio</translation></message>
<message><source>Directly</source><translation>Bezpośrednio</translation></message>
<message><source>Disk</source><translation>Dysk</translation></message>
<message><source>Dismiss</source><translation>Ukryj</translation></message>
<message><source>Dismiss this suggestion</source><translation>Ukryj tę propozycję</translation></message>
<message><source>Dismiss this warning</source><translation>Ukryj to ostrzeżenie</translation></message>
<message><source>Do not join: it was changed on the way.</source><translation>Nie dołączaj: zmieniono je po drodze.</translation></message>
<message><source>Do not start Waggle</source><translation>Nie uruchamiaj Waggle</translation></message>
<message><source>Does everything work here?</source><translation>Czy wszystko tu działa?</translation></message>
<message><source>Does it ask you to log in first? Open a page in your browser.</source><translation>Czy najpierw trzeba się zalogować? Otwórz stronę w przeglądarce.</translation></message>
<message><source>Does sharing help?</source><translation>Czy dzielenie się pomaga?</translation></message>
<message><source>Does sharing help? %1</source><translation>Czy dzielenie się pomaga? %1</translation></message>
<message><source>Does sharing help? See it in about two minutes</source><translation>Czy dzielenie się pomaga? Sprawdź w około dwie minuty</translation></message>
<message><source>Does this network ask you to log in first? Open a page in your browser.</source><translation>Czy ta sieć każe się najpierw zalogować? Otwórz stronę w przeglądarce.</translation></message>
<message><source>Done</source><translation>Gotowe</translation></message>
<message><source>Doubtful</source><translation>Wątpliwy</translation></message>
<message><source>Download %1</source><translation>Pobierz %1</translation></message>
<message><source>Download and train</source><translation>Pobierz i trenuj</translation></message>
<message><source>Download it and choose the file, or better, choose the model it was made from: its page names it.</source><translation>Pobierz go i wybierz plik, a jeszcze lepiej model, z którego powstał: podaje go jego strona.</translation></message>
<message><source>Download of CUDA</source><translation>Pobieranie CUDA</translation></message>
<message><source>Download of the model</source><translation>Pobieranie modelu</translation></message>
<message><source>Downloaded models</source><translation>Pobrane modele</translation></message>
<message><source>Downloaded models take %1; %2 are free</source><translation>Pobrane modele zajmują %1; wolne: %2</translation></message>
<message><source>Downloading</source><translation>Pobieranie</translation></message>
<message><source>Downloading %1</source><translation>Pobieranie %1</translation></message>
<message><source>Downloading the model</source><translation>Pobieranie modelu</translation></message>
<message><source>Downloading the model: %1, %2 left.</source><translation>Pobieranie modelu: %1, zostało: %2.</translation></message>
<message><source>Downloading the model: %1.</source><translation>Pobieranie modelu: %1.</translation></message>
<message><source>Downloading the swarm's questions: %1 of %2 parts</source><translation>Pobieranie pytań roju: części %1 z %2</translation></message>
<message><source>Dr. GRPO</source><translation>Dr. GRPO</translation></message>
<message><source>Drawing (*.svg)</source><translation>Rysunek (*.svg)</translation></message>
<message><source>Drop it to choose this model</source><translation>Upuść, aby wybrać ten model</translation></message>
<message><source>Drop it to create a swarm</source><translation>Upuść, aby utworzyć rój</translation></message>
<message><source>Drop it to look at the invite</source><translation>Upuść, aby obejrzeć zaproszenie</translation></message>
<message><source>Drop your file here</source><translation>Upuść plik tutaj</translation></message>
<message><source>Dropped because it broke a rule: %1.</source><translation>Odrzucono za złamanie reguły: %1.</translation></message>
<message><source>Each round</source><translation>Każda runda</translation></message>
<message><source>Earlier run, %1: %2 after %3</source><translation>Wcześniejszy przebieg, %1: %2, za nim %3</translation></message>
<message><source>Earlier runs</source><translation>Wcześniejsze przebiegi</translation></message>
<message><source>Easy</source><translation>Łatwe</translation></message>
<message><source>Easy questions: %1</source><translation>Łatwe pytania: %1</translation></message>
<message><source>Empty</source><translation>Puste</translation></message>
<message><source>End that process, then start again.</source><translation>Zakończ ten proces i uruchom ponownie.</translation></message>
<message><source>Ended</source><translation>Zakończono</translation></message>
<message><source>Energy</source><translation>Energia</translation></message>
<message><source>Energy per day</source><translation>Energia na dobę</translation></message>
<message><source>Energy today</source><translation>Energia dzisiaj</translation></message>
<message><source>English</source><translation>English</translation></message>
<message><source>Estimated</source><translation>Szacunkowo</translation></message>
<message><source>Estimated from the time contributed, at %1 W now (%2).</source><translation>Szacowane z czasu uczestnictwa, teraz przy %1 W (%2).</translation></message>
<message><source>Everybody in the swarm gets the whole file with its answers. Leave out what is secret or personal.</source><translation>Wszyscy w roju dostają cały plik wraz z odpowiedziami. Usuń to, co tajne lub osobiste.</translation></message>
<message><source>Everything is kept.</source><translation>Wszystko zostaje.</translation></message>
<message><source>Everything this computer has. For when you do not need it otherwise.</source><translation>Wszystko, co ten komputer ma. Na czas, gdy nie potrzebujesz go do niczego innego.</translation></message>
<message><source>Everything works.</source><translation>Wszystko działa.</translation></message>
<message><source>Exact text</source><translation>Dokładny tekst</translation></message>
<message><source>Example</source><translation>Przykład</translation></message>
<message><source>Example, recorded: it has ended</source><translation>Przykład, nagrany: już się skończył</translation></message>
<message><source>Example: a real swarm of two, recorded</source><translation>Przykład: prawdziwy rój z dwóch, nagrany</translation></message>
<message><source>Examples of its own from which your model learned</source><translation>Własne przykłady, z których twój model się uczył</translation></message>
<message><source>Examples of peers from which your model learned</source><translation>Przykłady peerów, z których twój model się uczył</translation></message>
<message><source>Except for the starter</source><translation>Z wyjątkiem startera</translation></message>
<message><source>Expect it to be wrong more often than right.</source><translation>Na razie częściej będzie się mylić.</translation></message>
<message><source>Export it</source><translation>Eksportuj</translation></message>
<message><source>Export it as JSON lines or CSV.</source><translation>Wyeksportuj go jako JSON lines lub CSV.</translation></message>
<message><source>Export to a new folder</source><translation>Eksportuj do nowego folderu</translation></message>
<message><source>Export what was learned</source><translation>Eksportuj to, czego się nauczył</translation></message>
<message><source>Export without the GGUF file.</source><translation>Wyeksportuj bez pliku GGUF.</translation></message>
<message><source>Family relationships</source><translation>Pokrewieństwo</translation></message>
<message><source>Feb</source><translation>lut</translation></message>
<message><source>Feed held while a card is open. </source><translation>Wstrzymane, dopóki karta jest otwarta. </translation></message>
<message><source>Feed held while it is scrolled down. </source><translation>Wstrzymane, dopóki lista jest przewinięta w dół. </translation></message>
<message><source>Feed held while the pointer is on it. </source><translation>Wstrzymane, dopóki wskaźnik jest nad listą. </translation></message>
<message><source>Feed held while you are in it. </source><translation>Wstrzymane, dopóki tu jesteś. </translation></message>
<message><source>Feed held. </source><translation>Wstrzymane. </translation></message>
<message><source>Fetching a question</source><translation>Pobieranie pytania</translation></message>
<message><source>Fields of a JSON object</source><translation>Pola obiektu JSON</translation></message>
<message><source>Figures for research tools</source><translation>Dane dla narzędzi badawczych</translation></message>
<message><source>Files of questions (%1)</source><translation>Pliki z pytaniami (%1)</translation></message>
<message><source>Filled hours may be used. Drag, or use the arrow keys and space.</source><translation>Waggle może używać wypełnionych godzin. Przeciągnij albo użyj klawiszy strzałek i spacji.</translation></message>
<message><source>Find a peer</source><translation>Znajdź peera</translation></message>
<message><source>Find a setting</source><translation>Znajdź ustawienie</translation></message>
<message><source>Find a specialty</source><translation>Znajdź specjalność</translation></message>
<message><source>Find computers nearby</source><translation>Znajduj komputery w pobliżu</translation></message>
<message><source>Find easier questions</source><translation>Znajdź łatwiejsze pytania</translation></message>
<message><source>Find harder questions</source><translation>Znajdź trudniejsze pytania</translation></message>
<message><source>Find in the log</source><translation>Szukaj w dzienniku</translation></message>
<message><source>Find other questions</source><translation>Znajdź inne pytania</translation></message>
<message><source>Find, in settings, models, peers and log</source><translation>Szukaj w ustawieniach, modelach, peerach i dzienniku</translation></message>
<message><source>Finished</source><translation>Zakończono</translation></message>
<message><source>Finishing</source><translation>Kończy</translation></message>
<message><source>Finishing round %1, then pausing.</source><translation>Kończenie rundy %1, potem pauza.</translation></message>
<message><source>Finishing this step, then closing.</source><translation>Kończenie tego kroku, potem zamknięcie.</translation></message>
<message><source>Finishing this step, then pausing.</source><translation>Kończenie tego kroku, potem pauza.</translation></message>
<message><source>Finishing this step, then waiting.</source><translation>Kończenie tego kroku, potem czekanie.</translation></message>
<message><source>First light</source><translation>First light</translation></message>
<message><source>First light, the default swarm</source><translation>First light, rój domyślny</translation></message>
<message><source>First right answer in %1</source><translation>Pierwsza poprawna odpowiedź: %1</translation></message>
<message><source>First right answer: %1</source><translation>Pierwsza dobra odpowiedź: %1</translation></message>
<message><source>First right answers</source><translation>Pierwsze poprawne odpowiedzi</translation></message>
<message><source>First steps</source><translation>First steps</translation></message>
<message><source>First steps, suited to %1</source><translation>First steps, odpowiedni dla %1</translation></message>
<message><source>First, a test to see where your model starts.</source><translation>Najpierw test, który pokaże, od czego zaczyna Twój model.</translation></message>
<message><source>First: a backup lets you come back as who you are, here or elsewhere.</source><translation>Najpierw: dzięki kopii zapasowej możesz wrócić jako ta sama osoba, tutaj albo gdzie indziej.</translation></message>
<message><source>Fits</source><translation>Mieści się</translation></message>
<message><source>Fits as an adapter</source><translation>Mieści się jako adapter</translation></message>
<message><source>Fits, saving memory</source><translation>Mieści się, oszczędnie</translation></message>
<message><source>Fits: about %1 answers an hour or more, %2 of %3 GB of memory.</source><translation>Mieści się: na godzinę około %1 odpowiedzi lub więcej, pamięć: %2 z %3 GB.</translation></message>
<message><source>Five easier kinds of question. Anyone may join; you train alone until someone does.</source><translation>Pięć łatwiejszych rodzajów pytań. Każdy może dołączyć; do tego czasu trenujesz samodzielnie.</translation></message>
<message><source>Follows answer formats well, so it learns quickly.</source><translation>Dobrze trzyma się formy odpowiedzi, więc szybko się uczy.</translation></message>
<message><source>For 1 hour, until %1</source><translation>Na 1 godzinę, do %1</translation></message>
<message><source>For a class</source><translation>Dla klasy</translation></message>
<message><source>For computers with more memory</source><translation>Dla komputerów z większą pamięcią</translation></message>
<message><source>For each specialty. More make the score more certain, and the test longer.</source><translation>Na każdą specjalność. Im więcej, tym pewniejszy wynik i dłuższy test.</translation></message>
<message><source>For example</source><translation>Na przykład</translation></message>
<message><source>For example when training stops, or waits for you.</source><translation>Na przykład gdy trening się zatrzyma albo czeka na Ciebie.</translation></message>
<message><source>For example: swarm.port=4001</source><translation>Na przykład: swarm.port=4001</translation></message>
<message><source>For networks that only let the web through. Separated by commas.</source><translation>Dla sieci, które przepuszczają tylko WWW. Oddzielone przecinkami.</translation></message>
<message><source>For saved states and models. At the limit, the oldest are deleted, but never the newest good state.</source><translation>Na zapisane stany i modele. Po osiągnięciu limitu usuwane są najstarsze, ale nigdy najnowszy dobry stan.</translation></message>
<message><source>For someone who can help. Names, addresses, peers and folders are left out; read it first.</source><translation>Dla kogoś, kto może pomóc. Pominięto nazwy, adresy, peery i foldery; najpierw go przeczytaj.</translation></message>
<message><source>For the rounds from now on.</source><translation>Dla rund od teraz.</translation></message>
<message><source>For the starter. Other models are tested by time, unless you change this.</source><translation>Dotyczy startera. Inne modele są sprawdzane co pewien czas, chyba że to zmienisz.</translation></message>
<message><source>For your account on this computer.</source><translation>Dla Twojego konta na tym komputerze.</translation></message>
<message><source>Forget</source><translation>Zapomnij</translation></message>
<message><source>Forget %1</source><translation>Zapomnij %1</translation></message>
<message><source>Forget it for good</source><translation>Zapomnij na zawsze</translation></message>
<message><source>Forget its key for good</source><translation>Zapomnij klucz na zawsze</translation></message>
<message><source>Forget one first.</source><translation>Najpierw zapomnij jeden.</translation></message>
<message><source>Form of the question</source><translation>Forma pytania</translation></message>
<message><source>Four words that nobody would guess are good.</source><translation>Dobre są cztery słowa, których nikt nie zgadnie.</translation></message>
<message><source>Fractions</source><translation>Ułamki</translation></message>
<message><source>Fri</source><translation>pt</translation></message>
<message><source>Friday</source><translation>piątek</translation></message>
<message><source>From Hugging Face, for every home of yours.</source><translation>Z Hugging Face, do każdego Twojego folderu Waggle.</translation></message>
<message><source>From peers</source><translation>Od peerów</translation></message>
<message><source>From your own file. Everybody in the swarm gets it; Waggle did not check its questions and answers.</source><translation>Z Twojego pliku. Dostają go wszyscy w roju; Waggle nie sprawdził jego pytań i odpowiedzi.</translation></message>
<message><source>Full</source><translation>Pełne</translation></message>
<message><source>GGUF files need the package gguf, which is not installed.</source><translation>Pliki GGUF wymagają pakietu gguf, a nie jest on zainstalowany.</translation></message>
<message><source>GGUF has no name for %1.</source><translation>GGUF nie ma nazwy dla %1.</translation></message>
<message><source>Game of Life</source><translation>Gra w życie</translation></message>
<message><source>Games</source><translation>Gry</translation></message>
<message><source>Gateway for others</source><translation>Brama dla innych</translation></message>
<message><source>Gateways</source><translation>Bramy</translation></message>
<message><source>Gather</source><translation>Zbieranie</translation></message>
<message><source>Gentle first steps</source><translation>Łagodne pierwsze kroki</translation></message>
<message><source>Geometry</source><translation>Geometria</translation></message>
<message><source>Get a token</source><translation>Utwórz token</translation></message>
<message><source>Getting both swarms ready; a few seconds</source><translation>Przygotowanie obu rojów; kilka sekund</translation></message>
<message><source>Getting ready</source><translation>Przygotowanie</translation></message>
<message><source>Give it a name, and choose at least one specialty or add questions of your own.</source><translation>Nadaj mu nazwę i wybierz co najmniej jedną specjalność albo dodaj własne pytania.</translation></message>
<message><source>Give it a name.</source><translation>Nadaj mu nazwę.</translation></message>
<message><source>Give one of them an identity of its own: Start over on the page You, or `waggle identity renew`.</source><translation>Nadaj jednemu z nich własną tożsamość: Zacznij od nowa na stronie Ty albo `waggle identity renew`.</translation></message>
<message><source>Go on</source><translation>Pobieraj dalej</translation></message>
<message><source>Go to Help</source><translation>Przejdź do Pomocy</translation></message>
<message><source>Go to Home</source><translation>Przejdź do strony Start</translation></message>
<message><source>Go to Settings</source><translation>Przejdź do Ustawień</translation></message>
<message><source>Go to a page</source><translation>Przejdź do strony</translation></message>
<message><source>Gone</source><translation>Zniknął</translation></message>
<message><source>Good at arithmetic and logic for its size.</source><translation>Jak na swój rozmiar dobry w arytmetyce i logice.</translation></message>
<message><source>Good models to begin with</source><translation>Dobre modele na początek</translation></message>
<message><source>Good to know</source><translation>Warto wiedzieć</translation></message>
<message><source>Goodbye, and thank you</source><translation>Do zobaczenia i dziękujemy</translation></message>
<message><source>Graded as</source><translation>Oceniane jako</translation></message>
<message><source>Graphs</source><translation>Grafy</translation></message>
<message><source>Greatest common divisor</source><translation>Największy wspólny dzielnik</translation></message>
<message><source>Greeting</source><translation>Powitanie</translation></message>
<message><source>Grids</source><translation>Siatki</translation></message>
<message><source>Grids in a line</source><translation>Siatki w linii</translation></message>
<message><source>Half of the cores, at least one. Large programs may start a little slower.</source><translation>Połowa rdzeni, co najmniej jeden. Duże programy mogą uruchamiać się nieco wolniej.</translation></message>
<message><source>Half right first</source><translation>Najpierw w połowie dobre</translation></message>
<message><source>Hard</source><translation>Trudne</translation></message>
<message><source>Hard questions: %1</source><translation>Trudne pytania: %1</translation></message>
<message><source>Help</source><translation>Pomoc</translation></message>
<message><source>High contrast</source><translation>Wysoki kontrast</translation></message>
<message><source>History</source><translation>Historia</translation></message>
<message><source>Home</source><translation>Start</translation></message>
<message><source>Home asks what to do about it, and so does `waggle status`.</source><translation>Strona Start zapyta, co z tym zrobić, podobnie jak `waggle status`.</translation></message>
<message><source>Hours</source><translation>Godziny</translation></message>
<message><source>How computers find each other</source><translation>Jak komputery się odnajdują</translation></message>
<message><source>How do I invite someone?</source><translation>Jak kogoś zaprosić?</translation></message>
<message><source>How exactly it calculates. A lower one may be faster.</source><translation>Jak dokładnie liczy. Niższa może być szybsza.</translation></message>
<message><source>How far off an answer may be</source><translation>O ile odpowiedź może się różnić</translation></message>
<message><source>How freely answers are tried: higher is more varied, lower more alike.</source><translation>Jak swobodnie próbować odpowiedzi: wyżej – bardziej różne, niżej – bardziej podobne.</translation></message>
<message><source>How it answers</source><translation>Jak odpowiada</translation></message>
<message><source>How it learns</source><translation>Jak się uczy</translation></message>
<message><source>How many computers are there now</source><translation>Ile komputerów jest tam teraz</translation></message>
<message><source>How many it may keep busy.</source><translation>Ile ich może zajmować.</translation></message>
<message><source>How many steps the learning rate takes to rise to its full value.</source><translation>W ilu krokach tempo uczenia rośnie do pełnej wartości.</translation></message>
<message><source>How models compare</source><translation>Porównanie modeli</translation></message>
<message><source>How others reach this computer</source><translation>Jak inni łączą się z tym komputerem</translation></message>
<message><source>How right an answer is, from 0 to 1.</source><translation>Jak poprawna jest odpowiedź, od 0 do 1.</translation></message>
<message><source>How right and wrong answers change the model.</source><translation>Jak dobre i złe odpowiedzi zmieniają model.</translation></message>
<message><source>How right its answers are in training</source><translation>Jak poprawne są jego odpowiedzi w treningu</translation></message>
<message><source>How the answers of %1 are graded</source><translation>Jak oceniane są odpowiedzi: %1</translation></message>
<message><source>How to try it</source><translation>Jak to wypróbować</translation></message>
<message><source>Hugging Face answered %1 when asked for %2.</source><translation>Hugging Face odpowiedział %1 na zapytanie o %2.</translation></message>
<message><source>Hugging Face answered %1.</source><translation>Hugging Face odpowiedział: %1.</translation></message>
<message><source>Hugging Face answered the search with %1.</source><translation>Hugging Face odpowiedział na wyszukiwanie: %1.</translation></message>
<message><source>Hugging Face cannot be reached, and %1 is not fully downloaded.</source><translation>Nie można połączyć się z Hugging Face, a %1 nie pobrano w całości.</translation></message>
<message><source>Hugging Face cannot be reached.</source><translation>Nie można połączyć się z Hugging Face.</translation></message>
<message><source>Hugging Face does not say what %1 consists of.</source><translation>Hugging Face nie podaje, z czego składa się %1.</translation></message>
<message><source>Hugging Face has lost a file of %1.</source><translation>W Hugging Face zaginął plik z %1.</translation></message>
<message><source>Hugging Face has no model %1.</source><translation>W Hugging Face nie ma modelu %1.</translation></message>
<message><source>Hugging Face no longer has %1 as it was when its training here began.</source><translation>Hugging Face nie ma już %1 w wersji, od której zaczął się trening tutaj.</translation></message>
<message><source>Hugging Face refuses %1 to your token</source><translation>Hugging Face odmawia Twojemu tokenowi modelu %1</translation></message>
<message><source>Hugging Face refuses %1 to your token.</source><translation>Hugging Face odmawia Twojemu tokenowi dostępu do %1.</translation></message>
<message><source>Hugging Face sends %1 in a form that cannot be read, or in circles.</source><translation>Hugging Face wysyła %1 w nieczytelnej postaci albo w kółko.</translation></message>
<message><source>I was invited</source><translation>Mam zaproszenie</translation></message>
<message><source>If a router blocks this computer, others relay for it.</source><translation>Jeśli router blokuje ten komputer, inne pośredniczą za niego.</translation></message>
<message><source>If a screen reader is running, once a minute.</source><translation>Gdy działa czytnik ekranu, raz na minutę.</translation></message>
<message><source>If it is another computer, one of the two is a copy. Give one of them an identity of its own: Start over on the page You, or `waggle identity renew`.</source><translation>Jeśli to inny komputer, jeden z nich jest kopią. Nadaj jednemu z nich własną tożsamość: Zacznij od nowa na stronie Ty albo `waggle identity renew`.</translation></message>
<message><source>If it is this one, set it by the network. Answers that seem too old or too new are refused.</source><translation>Jeśli to ten, ustaw go według sieci. Odpowiedzi, które wydają się zbyt stare lub zbyt nowe, są odrzucane.</translation></message>
<message><source>If this goes on, look at the page Help, or run `waggle doctor`.</source><translation>Jeśli to się powtarza, zajrzyj na stronę Pomoc albo uruchom `waggle doctor`.</translation></message>
<message><source>If you measured them. Otherwise Waggle estimates them, as shown under You.</source><translation>Jeśli znasz je z pomiaru. Inaczej Waggle je szacuje, jak widać w części „Ty”.</translation></message>
<message><source>In %1</source><translation>W %1</translation></message>
<message><source>In %1 of %2 specialties, a peer was right first. Your model might have got there alone, too.</source><translation>W %1 z %2 specjalności pierwszy dobrze odpowiedział peer. Być może Twój model doszedłby do tego też sam.</translation></message>
<message><source>In %1, everybody has the name of a key.</source><translation>W %1 nazwa każdej osoby pochodzi z jej klucza.</translation></message>
<message><source>In %1: %2 is no section.</source><translation>W %1: %2 nie jest sekcją.</translation></message>
<message><source>In %1: %2.</source><translation>W %1: %2.</translation></message>
<message><source>In a chat</source><translation>W rozmowie</translation></message>
<message><source>In a chat, after an example</source><translation>W rozmowie, po przykładzie</translation></message>
<message><source>In a chat, answer begun</source><translation>W rozmowie, odpowiedź zaczęta</translation></message>
<message><source>In between</source><translation>Pomiędzy</translation></message>
<message><source>In this window</source><translation>W tym oknie</translation></message>
<message><source>In training</source><translation>W treningu</translation></message>
<message><source>In your currency. The page You then shows the cost.</source><translation>W Twojej walucie. Strona Ty pokaże wtedy koszt.</translation></message>
<message><source>Install OpenSSH, then start again.</source><translation>Zainstaluj OpenSSH i uruchom ponownie.</translation></message>
<message><source>Install Waggle again, or send us what stands above.</source><translation>Zainstaluj Waggle ponownie albo wyślij nam to, co widać powyżej.</translation></message>
<message><source>Install Waggle again, or set computer.device to auto.</source><translation>Zainstaluj Waggle ponownie albo ustaw computer.device na auto.</translation></message>
<message><source>Install Waggle again.</source><translation>Zainstaluj Waggle ponownie.</translation></message>
<message><source>Install it over this one whenever you like: what Waggle learned stays.</source><translation>Zainstaluj ją na tej w dowolnej chwili: to, czego Waggle się nauczył, zostaje.</translation></message>
<message><source>Install it with: %1</source><translation>Zainstaluj za pomocą: %1</translation></message>
<message><source>Install the system's certificates.</source><translation>Zainstaluj certyfikaty systemu.</translation></message>
<message><source>Invite</source><translation>Zaproś</translation></message>
<message><source>Invite a friend</source><translation>Zaproś znajomą osobę</translation></message>
<message><source>Invite link</source><translation>Link z zaproszeniem</translation></message>
<message><source>Invite someone</source><translation>Zaproś kogoś</translation></message>
<message><source>Invite someone to %1</source><translation>Zaproś kogoś do: %1</translation></message>
<message><source>Invite someone with a link.</source><translation>Zaproś kogoś linkiem.</translation></message>
<message><source>Is %1 true, false or unknown? Answer with one word.</source><translation>Czy %1 to prawda, fałsz czy nie wiadomo? Odpowiedz jednym słowem.</translation></message>
<message><source>Is there a newer Waggle?</source><translation>Czy jest nowsza wersja Waggle?</translation></message>
<message><source>Isomorphic strings</source><translation>Izomorficzne napisy</translation></message>
<message><source>It %1.</source><translation>Ten peer %1.</translation></message>
<message><source>It already knows language. %1 to download; until it is here, Waggle trains its tiny starter.</source><translation>Zna już język. %1 do pobrania; do tego czasu trenuje malutki starter od Waggle.</translation></message>
<message><source>It answers; nobody has announced anything just now.</source><translation>Odpowiada; w tej chwili nikt niczego nie ogłasza.</translation></message>
<message><source>It appears here once training runs</source><translation>Pojawi się tutaj, gdy ruszy trening</translation></message>
<message><source>It asks easy questions that a class can check: arithmetic, calendar, decimals, fractions, logic. Rounds are short, and the recommended model is the starter that comes with Waggle.</source><translation>Zadaje łatwe pytania, które klasa może sprawdzić: arytmetyka, kalendarz, ułamki dziesiętne i zwykłe, logika. Rundy są krótkie, a zalecany model to starter dołączony do Waggle.</translation></message>
<message><source>It asks for a name and a password: write them into its address, as in http://name:password@host:port.</source><translation>Wymaga nazwy i hasła: wpisz je do adresu, na przykład http://nazwa:hasło@host:port.</translation></message>
<message><source>It began at %2.</source><translation>Na początku: %2.</translation></message>
<message><source>It began at about %2.</source><translation>Na początku: około %2.</translation></message>
<message><source>It begins with the words: Waggle identity.</source><translation>Zaczyna się od słów: Waggle identity.</translation></message>
<message><source>It broke a rule (%1): it is asked again in %2.</source><translation>Złamana reguła (%1): kolejne zapytanie za %2.</translation></message>
<message><source>It can be trained.</source><translation>Można go trenować.</translation></message>
<message><source>It can learn little from them. Settings offer a credit for the answer tags.</source><translation>Niewiele może się z nich nauczyć. W Ustawieniach możesz włączyć nagrodę za znaczniki odpowiedzi.</translation></message>
<message><source>It cannot be started. Install Waggle again.</source><translation>Nie można go uruchomić. Zainstaluj Waggle ponownie.</translation></message>
<message><source>It comes with Waggle and is open to all. It may be empty: then you train alone until you invite someone.</source><translation>Jest częścią Waggle i jest otwarty dla wszystkich. Może być pusty: wtedy trenujesz solo, dopóki kogoś nie zaprosisz.</translation></message>
<message><source>It continues in smaller parts, which take less memory.</source><translation>Praca idzie dalej w mniejszych częściach, które zajmują mniej pamięci.</translation></message>
<message><source>It continues in the previous swarm.</source><translation>Trening trwa dalej w poprzednim roju.</translation></message>
<message><source>It counts only while “Train alone” is on in Settings.</source><translation>Działa tylko wtedy, gdy w ustawieniach włączono „Trenuj samodzielnie”.</translation></message>
<message><source>It does not get this one right yet.</source><translation>Na to jeszcze nie odpowiada dobrze.</translation></message>
<message><source>It finds right answers, but does not mark them with the answer tag yet. It learns that first.</source><translation>Znajduje dobre odpowiedzi, ale jeszcze nie oznacza ich znacznikiem odpowiedzi. Tego uczy się najpierw.</translation></message>
<message><source>It finishes its step first.</source><translation>Najpierw kończy bieżący krok.</translation></message>
<message><source>It found the way alone.</source><translation>Sam znalazł drogę.</translation></message>
<message><source>It gets this one right.</source><translation>Na to odpowiada dobrze.</translation></message>
<message><source>It got there by itself.</source><translation>Model doszedł do niej sam.</translation></message>
<message><source>It had learned there from %1.</source><translation>Uczył się tam od peera %1.</translation></message>
<message><source>It had played %1 of %2 rounds.</source><translation>Rozegrano %1 z %2 rund.</translation></message>
<message><source>It has to be downloaded again.</source><translation>Trzeba go pobrać ponownie.</translation></message>
<message><source>It holds %1. You would be %1 from now on, and %2 would be kept beside it. Your model and history stay.</source><translation>Zawiera tożsamość %1. Po przywróceniu będziesz występować jako %1, a obok zostanie kopia tożsamości %2. Twój model i historia zostają.</translation></message>
<message><source>It is a number of rounds, 0 or more.</source><translation>To liczba rund, 0 lub więcej.</translation></message>
<message><source>It is asked like any stranger.</source><translation>Pytany jak każdy nieznajomy.</translation></message>
<message><source>It is asked like any stranger: most of its examples that were tried here taught nothing.</source><translation>Pytany jak każdy nieznajomy: większość jego wypróbowanych tu przykładów niczego nie nauczyła.</translation></message>
<message><source>It is being downloaded.</source><translation>Trwa pobieranie.</translation></message>
<message><source>It is best at %1 (%2 right).</source><translation>Najlepiej idzie mu: %1 (%2 dobrze).</translation></message>
<message><source>It is checked first. Until then you keep training the present one.</source><translation>Najpierw zostanie sprawdzony. Do tego czasu trenujesz dalej obecny.</translation></message>
<message><source>It is downloaded again.</source><translation>Pobieranie zaczyna się od nowa.</translation></message>
<message><source>It is incomplete.</source><translation>Jest niekompletny.</translation></message>
<message><source>It is incomplete: %1.</source><translation>Jest niekompletny: %1.</translation></message>
<message><source>It is plugged in.</source><translation>Zasilanie jest podłączone.</translation></message>
<message><source>It is private: whoever has the link can join, and a link cannot be taken back.</source><translation>Jest prywatny: dołączyć może każdy, kto ma link, a linku nie da się cofnąć.</translation></message>
<message><source>It is ready: its charter is written and its questions are agreed on. Switch to it, then invite others.</source><translation>Jest gotowy: karta roju jest spisana, a pytania uzgodnione. Przełącz na niego, a potem zaproś innych.</translation></message>
<message><source>It is thinking</source><translation>Myśli</translation></message>
<message><source>It is tried again by itself.</source><translation>Kolejna próba nastąpi sama.</translation></message>
<message numerus="yes"><source>It knew this before training. After %n rounds it also writes it in the required form.</source><translation><numerusform>Znał odpowiedź już przed treningiem. Po %n rundzie oznacza ją też jako swoją odpowiedź.</numerusform><numerusform>Znał odpowiedź już przed treningiem. Po %n rundach oznacza ją też jako swoją odpowiedź.</numerusform><numerusform>Znał odpowiedź już przed treningiem. Po %n rundach oznacza ją też jako swoją odpowiedź.</numerusform></translation></message>
<message><source>It knows %1.</source><translation>Obsługiwane: %1.</translation></message>
<message><source>It knows this one, but does not mark it as its answer yet.</source><translation>Zna odpowiedź, ale jeszcze nie oznacza jej jako swojej odpowiedzi.</translation></message>
<message><source>It learned from examples of peers.</source><translation>Uczył się z przykładów od peerów.</translation></message>
<message numerus="yes"><source>It learned this: %1 before training, right after %n rounds.</source><translation><numerusform>Tego się nauczył: przed treningiem %1, po %n rundzie dobrze.</numerusform><numerusform>Tego się nauczył: przed treningiem %1, po %n rundach dobrze.</numerusform><numerusform>Tego się nauczył: przed treningiem %1, po %n rundach dobrze.</numerusform></translation></message>
<message><source>It learns</source><translation>Uczy się</translation></message>
<message><source>It learns from its own successes and from theirs, a little every round.</source><translation>Uczy się na sukcesach własnych i cudzych, w każdej rundzie po trochu.</translation></message>
<message><source>It learns from the few answers that are right. Until there are some, its score stays low.</source><translation>Uczy się z nielicznych dobrych odpowiedzi. Dopóki ich nie ma, jego wynik jest niski.</translation></message>
<message><source>It looks like /ip4/203.0.113.7/tcp/4001/p2p/12D3Koo...: copy it whole from the seed.</source><translation>Wygląda tak: /ip4/203.0.113.7/tcp/4001/p2p/12D3Koo... Skopiuj go w całości z punktu startowego.</translation></message>
<message><source>It looks like wss://example.org/gateway.</source><translation>Wygląda tak: wss://example.org/gateway.</translation></message>
<message><source>It may be cut off, or hide them. Yours are put together from all gateways; add one of another operator.</source><translation>Może być odcięta albo je ukrywać. Twoje są zbierane ze wszystkich bram; dodaj bramę innego operatora.</translation></message>
<message><source>It may have %1 characters; fewer in some scripts.</source><translation>Dopuszczalna liczba znaków: %1; w niektórych pismach mniej.</translation></message>
<message><source>It needs seven, Monday first, or none.</source><translation>Potrzeba siedmiu, od poniedziałku, albo żadnego.</translation></message>
<message><source>It never trains on these questions.</source><translation>Na tych pytaniach model nigdy nie trenuje.</translation></message>
<message><source>It pauses as soon as that step ends.</source><translation>Pauza zacznie się zaraz po tym kroku.</translation></message>
<message><source>It pauses once it has used %1 in a day.</source><translation>Robi przerwę, gdy w ciągu dnia zużyje %1.</translation></message>
<message><source>It reads PNG, JPEG, WebP, BMP and GIF.</source><translation>Waggle czyta PNG, JPEG, WebP, BMP i GIF.</translation></message>
<message><source>It said nothing.</source><translation>Nic nie powiedział.</translation></message>
<message><source>It said something endless.</source><translation>Komunikat nie miał końca.</translation></message>
<message><source>It shows where your model begins, so that you see what training adds.</source><translation>Pokazuje, od czego zaczyna Twój model, aby było widać, co daje trening.</translation></message>
<message><source>It starts at the next login.</source><translation>Uruchomi się przy następnym logowaniu.</translation></message>
<message><source>It takes %1.</source><translation>Zajmuje %1.</translation></message>
<message><source>It takes a few seconds.</source><translation>Potrwa to kilka sekund.</translation></message>
<message><source>It takes examples from here; none of its own has come yet.</source><translation>Pobiera przykłady stąd; od niego jeszcze żaden nie dotarł.</translation></message>
<message><source>It tells</source><translation>Opowiada</translation></message>
<message><source>It trains a small language model on this computer: the model answers puzzles, and a program checks the answers. Peers do the same, and all learn from each other.</source><translation>Trenuje mały model językowy na tym komputerze: model rozwiązuje zagadki, a program sprawdza odpowiedzi. Inni robią to samo i wszyscy uczą się od siebie.</translation></message>
<message><source>It trains on</source><translation>Zakres treningu</translation></message>
<message><source>It tries</source><translation>Próbuje</translation></message>
<message><source>It uses %1 now. Choose Quiet, Balanced or Full on Home.</source><translation>Teraz używa %1. Na stronie Start wybierz Ciche, Zrównoważone albo Pełne.</translation></message>
<message><source>It uses one core at low priority; your training continues.</source><translation>Zajmuje jeden rdzeń z niskim priorytetem; Twój trening trwa.</translation></message>
<message><source>It uses only part of the processor. Choose Quiet, Balanced or Full on Home.</source><translation>Używa tylko części procesora. Na stronie Start wybierz Ciche, Zrównoważone albo Pełne.</translation></message>
<message><source>It uses reasoning-gym %1, this Waggle %2.</source><translation>Używa reasoning-gym %1, a to Waggle %2.</translation></message>
<message><source>It was another one.</source><translation>To była inna.</translation></message>
<message><source>It was left out.</source><translation>Krok został pominięty.</translation></message>
<message><source>It was plugged in just now.</source><translation>Zasilanie podłączono przed chwilą.</translation></message>
<message><source>It was right once, and is not now.</source><translation>Raz odpowiedział dobrze, teraz już nie.</translation></message>
<message><source>It was trained only on puzzles, so it won't chat well, and it doesn't remember earlier messages.</source><translation>Uczono go tylko zagadek, więc słabo rozmawia i nie pamięta wcześniejszych wiadomości.</translation></message>
<message><source>It works from anywhere.</source><translation>Działa z każdego miejsca.</translation></message>
<message><source>It works on this computer only.</source><translation>Działa tylko na tym komputerze.</translation></message>
<message><source>Its QR code is on the screen.</source><translation>Jego kod QR jest na ekranie.</translation></message>
<message><source>Its answers are no numbers.</source><translation>Odpowiedzi nie są liczbami.</translation></message>
<message><source>Its answers are on the page Live.</source><translation>Jego odpowiedzi są na stronie Na żywo.</translation></message>
<message><source>Its chat template cannot be used, so it is trained in plain text, without chat: %1.</source><translation>Jego szablonu czatu nie da się użyć, więc trenuje na zwykłym tekście, bez czatu: %1.</translation></message>
<message><source>Its config.json needs an eos_token_id.</source><translation>Jego config.json wymaga pola eos_token_id.</translation></message>
<message><source>Its first answers appear here.</source><translation>Tu pojawią się jego pierwsze odpowiedzi.</translation></message>
<message><source>Its first right answer in %1</source><translation>Jego pierwsza poprawna odpowiedź: %1</translation></message>
<message><source>Its licence is not accepted yet.</source><translation>Licencja nie jest jeszcze przyjęta.</translation></message>
<message><source>Its log may say why: `waggle log`.</source><translation>Być może powód podaje jego dziennik: `waggle log`.</translation></message>
<message><source>Its members may be off. Try again later, or ask for a newer invite.</source><translation>Jego członkowie mogą być offline. Spróbuj później albo poproś o nowsze zaproszenie.</translation></message>
<message><source>Its questions are shown before anything starts.</source><translation>Zanim cokolwiek się zacznie, zobaczysz pytania.</translation></message>
<message><source>Its questions had false answers, and members now agree on levels that were checked. Create it anew and send its members a new invite.</source><translation>Do jego pytań należały błędne odpowiedzi, a członkowie uzgadniają teraz sprawdzone poziomy. Utwórz go na nowo i wyślij członkom nowe zaproszenie.</translation></message>
<message><source>Its questions had false answers, and members now agree on levels that were checked. First light continues with new questions and needs no invite.</source><translation>Do jego pytań należały błędne odpowiedzi, a członkowie uzgadniają teraz sprawdzone poziomy. First light działa dalej z nowymi pytaniami i nie wymaga zaproszenia.</translation></message>
<message><source>Its settings changed in between, or the history lacks rounds of it.</source><translation>Jego ustawienia zmieniły się po drodze albo w historii brakuje jego rund.</translation></message>
<message><source>Its training continues.</source><translation>Jego trening trwa dalej.</translation></message>
<message><source>Its tries</source><translation>Jego próby</translation></message>
<message><source>Its whole path on the computer that the engine runs on</source><translation>Pełna ścieżka na komputerze, na którym działa silnik</translation></message>
<message><source>JSON lines (.jsonl) or a table (.csv): a question and its answer on each line.</source><translation>Wiersze JSON (.jsonl) lub tabela (.csv): w każdym wierszu pytanie i odpowiedź.</translation></message>
<message><source>JSON objects</source><translation>obiekty JSON</translation></message>
<message><source>Jan</source><translation>sty</translation></message>
<message><source>Join</source><translation>Dołącz</translation></message>
<message><source>Join %1</source><translation>Dołącz do: %1</translation></message>
<message><source>Join with an invite</source><translation>Dołącz z zaproszeniem</translation></message>
<message><source>Joining the swarm</source><translation>Dołączanie do roju</translation></message>
<message><source>Judge</source><translation>Ocena</translation></message>
<message><source>Judged again on this computer. </source><translation>Ocenione ponownie na tym komputerze. </translation></message>
<message><source>Jul</source><translation>lip</translation></message>
<message><source>Jun</source><translation>cze</translation></message>
<message><source>Kakurasu</source><translation>Kakurasu</translation></message>
<message><source>Keep everything</source><translation>Zachowaj wszystko</translation></message>
<message><source>Keep my answers here</source><translation>Zostaw moje odpowiedzi tutaj</translation></message>
<message><source>Keep my training</source><translation>Zachowaj mój trening</translation></message>
<message><source>Keep running in the menu bar when closed</source><translation>Po zamknięciu działaj na pasku menu</translation></message>
<message><source>Keep running in the tray when closed</source><translation>Po zamknięciu działaj w zasobniku</translation></message>
<message><source>Keep them here</source><translation>Zostaw je tutaj</translation></message>
<message><source>Keep this computer awake</source><translation>Nie usypiaj tego komputera</translation></message>
<message><source>Keep training</source><translation>Trenuj dalej</translation></message>
<message><source>Keep your model</source><translation>Zachowaj swój model</translation></message>
<message><source>Keeps running without this window</source><translation>Działa dalej bez tego okna</translation></message>
<message><source>Kept awake</source><translation>Komputer nie zasypia</translation></message>
<message><source>Keys</source><translation>Klawisze</translation></message>
<message><source>Knights and knaves</source><translation>Rycerze i łotrzy</translation></message>
<message><source>Known here: %1.</source><translation>Znane tutaj: %1.</translation></message>
<message><source>Known here: %1. The folder of a node is its newest run.</source><translation>Znane tutaj: %1. Folder węzła oznacza jego najnowszy przebieg.</translation></message>
<message><source>Language</source><translation>Język</translation></message>
<message><source>Largest island</source><translation>Największa wyspa</translation></message>
<message><source>Last finished round: %1</source><translation>Ostatnia ukończona runda: %1</translation></message>
<message><source>Last test: both swarms answer new questions</source><translation>Ostatni test: oba roje odpowiadają na nowe pytania</translation></message>
<message><source>Later</source><translation>Później</translation></message>
<message><source>Latest right answer</source><translation>Najnowsza dobra odpowiedź</translation></message>
<message><source>Leaderboard</source><translation>Ranking</translation></message>
<message><source>Lean training is not there on MLX.</source><translation>Oszczędny trening nie jest dostępny na MLX.</translation></message>
<message><source>Learn</source><translation>Nauka</translation></message>
<message><source>Learn nothing from it, and give it nothing.</source><translation>Niczego się od niego nie ucz i niczego mu nie dawaj.</translation></message>
<message><source>Learn nothing from it; it still gets your examples.</source><translation>Niczego się od niego nie ucz; nadal dostaje Twoje przykłady.</translation></message>
<message><source>Learned from others</source><translation>Nauczone od innych</translation></message>
<message><source>Learned from you</source><translation>Uczyły się od Ciebie</translation></message>
<message><source>Learning again what came after the last checkpoint: %1 of %2 rounds</source><translation>Ponowna nauka tego, co było po ostatnim punkcie kontrolnym, rundy: %1 z %2</translation></message>
<message><source>Learning and tests</source><translation>Nauka i testy</translation></message>
<message><source>Learning rate</source><translation>Tempo uczenia</translation></message>
<message><source>Least common multiple</source><translation>Najmniejsza wspólna wielokrotność</translation></message>
<message><source>Leave one of these columns out.</source><translation>Pomiń jedną z tych kolumn.</translation></message>
<message><source>Leave out what follows the @, or correct it.</source><translation>Pomiń to, co następuje po @, albo popraw.</translation></message>
<message><source>Leave some out.</source><translation>Pomiń część z nich.</translation></message>
<message><source>Leave some questions or columns out.</source><translation>Pomiń część pytań lub kolumn.</translation></message>
<message><source>Leave the others out.</source><translation>Pomiń pozostałe.</translation></message>
<message><source>Leave the tolerance out, or choose the grader number.</source><translation>Pomiń tolerancję albo wybierz ocenę number.</translation></message>
<message><source>Leaves out unlikely words. With 1, it leaves out none.</source><translation>Pomija mało prawdopodobne słowa. Przy 1 nie pomija żadnego.</translation></message>
<message><source>Leaving?</source><translation>Odchodzisz?</translation></message>
<message><source>Left out: %1.</source><translation>Pominięte: %1.</translation></message>
<message><source>Leg counting</source><translation>Liczenie nóg</translation></message>
<message><source>Less than 1 Wh so far: as much as a laptop uses in about %1.</source><translation>Dotąd mniej niż 1 Wh: tyle, ile laptop zużywa w około %1.</translation></message>
<message><source>Let Waggle finish a round first.</source><translation>Niech Waggle najpierw skończy rundę.</translation></message>
<message><source>Let Waggle use more memory in Settings.</source><translation>Pozwól Waggle w ustawieniach używać więcej pamięci.</translation></message>
<message><source>Let Waggle use more of the disk in Settings, or choose a smaller model.</source><translation>Pozwól Waggle w ustawieniach zająć więcej miejsca na dysku albo wybierz mniejszy model.</translation></message>
<message><source>Let your computer learn with others</source><translation>Niech Twój komputer uczy się z innymi</translation></message>
<message><source>Letter counting</source><translation>Liczenie liter</translation></message>
<message><source>Level so far, at %1</source><translation>Na razie remis: %1</translation></message>
<message><source>Licence: %1</source><translation>Licencja: %1</translation></message>
<message><source>Light</source><translation>Jasny</translation></message>
<message><source>Light and dark follow your system unless you choose.</source><translation>Jasny i ciemny motyw zmienia się z systemem, chyba że wybierzesz inaczej.</translation></message>
<message><source>Like a bee back at the hive, it shows the others what it tried.</source><translation>Jak pszczoła po powrocie do ula pokazuje innym, czego próbował.</translation></message>
<message><source>Limit for sending, and for receiving.</source><translation>Limit wysyłania i taki sam limit odbierania.</translation></message>
<message><source>List</source><translation>Lista</translation></message>
<message><source>Listen on</source><translation>Nasłuchuj na</translation></message>
<message><source>Live</source><translation>Na żywo</translation></message>
<message><source>LoRA for this model needs peft, which is not installed.</source><translation>LoRA dla tego modelu wymaga peft, a nie jest zainstalowane.</translation></message>
<message><source>Loading</source><translation>Wczytywanie</translation></message>
<message><source>Loading the model</source><translation>Wczytywanie modelu</translation></message>
<message><source>Loading your swarms.</source><translation>Wczytywanie twoich rojów.</translation></message>
<message><source>Log</source><translation>Dziennik</translation></message>
<message><source>Logic</source><translation>Logika</translation></message>
<message><source>Logs</source><translation>Dzienniki</translation></message>
<message><source>Longer ones are cut off and cannot be read.</source><translation>Dłuższe są ucinane i nie da się ich odczytać.</translation></message>
<message><source>Longest answer</source><translation>Najdłuższa odpowiedź</translation></message>
<message><source>Look</source><translation>Wygląd</translation></message>
<message><source>Look at its log.</source><translation>Zajrzyj do jego dziennika.</translation></message>
<message><source>Look at the page Help, or run `waggle doctor`.</source><translation>Zajrzyj na stronę Pomoc albo uruchom `waggle doctor`.</translation></message>
<message><source>Look at the page Help, or run `waggle doctor`. It says: %1</source><translation>Zajrzyj na stronę Pomoc albo uruchom `waggle doctor`. Komunikat: %1</translation></message>
<message><source>Look into it</source><translation>Zajrzyj do środka</translation></message>
<message><source>Look where you got it.</source><translation>Sprawdź tam, skąd pochodzi.</translation></message>
<message><source>Look where you got this Waggle.</source><translation>Sprawdź tam, skąd masz to Waggle.</translation></message>
<message><source>Looking for a QR code in the picture.</source><translation>Szukanie kodu QR na obrazie.</translation></message>
<message><source>Looking for earlier runs.</source><translation>Szukanie wcześniejszych przebiegów.</translation></message>
<message><source>Looking for peers</source><translation>Szuka peerów</translation></message>
<message><source>Looking for peers (tried %1).</source><translation>Szuka peerów (próby: %1).</translation></message>
<message><source>Looking for peers.</source><translation>Szuka peerów.</translation></message>
<message><source>Looking for the model</source><translation>Szukanie modelu</translation></message>
<message><source>Looking up %1 on Hugging Face</source><translation>Szukanie %1 w Hugging Face</translation></message>
<message><source>Loss</source><translation>Strata</translation></message>
<message><source>Low</source><translation>Niski</translation></message>
<message><source>Lower for larger models.</source><translation>Niższe dla większych modeli.</translation></message>
<message><source>Lower learning.local or raise learning.questions.</source><translation>Zmniejsz learning.local albo zwiększ learning.questions.</translation></message>
<message><source>Lower learning.questions, or choose another swarm.</source><translation>Zmniejsz learning.questions albo wybierz inny rój.</translation></message>
<message><source>Lower the learning rate</source><translation>Zmniejsz tempo uczenia</translation></message>
<message><source>Lowest</source><translation>Najniższy</translation></message>
<message><source>MLX cannot be used: %1</source><translation>Nie można użyć MLX: %1</translation></message>
<message><source>MLX cannot be used: %1.</source><translation>Nie można użyć MLX: %1.</translation></message>
<message><source>MLX does not put the layers of a model in 4 bits.</source><translation>MLX nie zapisuje warstw modelu w 4 bitach.</translation></message>
<message><source>Made for</source><translation>Zalecany model</translation></message>
<message><source>Made for conversation on small devices.</source><translation>Stworzony do rozmów na małych urządzeniach.</translation></message>
<message><source>Made to be fast on ordinary processors.</source><translation>Stworzony z myślą o szybkości na zwykłych procesorach.</translation></message>
<message><source>Make a token with write access to it, and store it with `waggle token`.</source><translation>Utwórz token z prawem zapisu i zapisz go poleceniem `waggle token`.</translation></message>
<message><source>Make it writable; in a container, by its options. To train alone meanwhile, set swarm.solo to true.</source><translation>Włącz zapis; w kontenerze przez jego opcje. Aby do tego czasu trenować solo, ustaw swarm.solo na true.</translation></message>
<message><source>Make one on %1.</source><translation>Utwórz go na %1.</translation></message>
<message><source>Make room on the disk, or ask for a larger share.</source><translation>Zwolnij miejsce na dysku albo poproś o większy przydział.</translation></message>
<message><source>Make room on the disk, or mend its rights.</source><translation>Zwolnij miejsce na dysku albo popraw uprawnienia.</translation></message>
<message><source>Make room on the disk, then go on.</source><translation>Zwolnij miejsce na dysku i kontynuuj.</translation></message>
<message><source>Make room on the disk.</source><translation>Zwolnij miejsce na dysku.</translation></message>
<message><source>Make room on the disk: what happens until then is missing in the record.</source><translation>Zwolnij miejsce na dysku: tego, co dzieje się do tej pory, zabraknie w zapisie.</translation></message>
<message><source>Make room, or choose a smaller model; %1 MB are to stay free.</source><translation>Zwolnij miejsce albo wybierz mniejszy model; wolne ma zostać: %1 MB.</translation></message>
<message><source>Make room, or choose a smaller model; %1 are to stay free.</source><translation>Zwolnij miejsce albo wybierz mniejszy model; wolne ma zostać: %1.</translation></message>
<message><source>Makes the run of a computer that trains alone repeatable.</source><translation>Sprawia, że przebieg komputera trenującego solo można powtórzyć.</translation></message>
<message><source>Making its questions; a few seconds.</source><translation>Tworzenie pytań; kilka sekund.</translation></message>
<message><source>Manipulate matrix</source><translation>Przekształcanie macierzy</translation></message>
<message><source>Mar</source><translation>mar</translation></message>
<message><source>Mark hours in the week to start.</source><translation>Zaznacz godziny w tygodniu, aby zacząć.</translation></message>
<message><source>May</source><translation>maj</translation></message>
<message><source>May not fit: about %1 answers an hour or more, %2 of %3 GB of memory.</source><translation>Może się nie zmieścić: około %1 odpowiedzi na godzinę lub więcej, pamięć: %2 z %3 GB.</translation></message>
<message><source>Maze</source><translation>Labirynt</translation></message>
<message><source>Mean reward</source><translation>Śr. nagroda</translation></message>
<message><source>Means of %1 runs alone and of %2 swarms on the same specialties. Your own run may differ.</source><translation>Średnie z przebiegów solo (%1) i rojów (%2) na tych samych specjalnościach. Twój przebieg może być inny.</translation></message>
<message><source>Meanwhile: you against the model</source><translation>W międzyczasie: Ty kontra model</translation></message>
<message><source>Measured elsewhere</source><translation>Zmierzone gdzie indziej</translation></message>
<message><source>Measured elsewhere, %1</source><translation>Zmierzone gdzie indziej, %1</translation></message>
<message><source>Measured elsewhere, %1: %2 after %3</source><translation>Zmierzone gdzie indziej, %1: %2 po %3</translation></message>
<message><source>Members may choose the name that the class sees. It reaches members only, and everybody who can see that page.</source><translation>Członkowie mogą wybrać nazwę, którą widzi klasa. Trafia ona tylko do członków i do wszystkich, którzy widzą tę stronę.</translation></message>
<message><source>Members who have them may be off. Try again later, or ask for a newer invite.</source><translation>Członkowie, którzy je mają, mogą być offline. Spróbuj później albo poproś o nowsze zaproszenie.</translation></message>
<message><source>Memory</source><translation>Pamięć</translation></message>
<message><source>Memory is short: what usually runs together is divided into %1 parts.</source><translation>Brakuje pamięci: to, co zwykle działa razem, jest dzielone na części (%1).</translation></message>
<message><source>Memory ran short while answering: %1 answers are written at a time from now on.</source><translation>Przy odpowiadaniu zabrakło pamięci: liczba odpowiedzi pisanych naraz to od teraz %1.</translation></message>
<message><source>Memory ran short while learning: %1 tokens are learned from at a time from now on.</source><translation>Przy nauce zabrakło pamięci: liczba tokenów przerabianych naraz to od teraz %1.</translation></message>
<message><source>Memory ran short, so the work is done in %1 parts, with the same result.</source><translation>Zabrakło pamięci, więc praca jest dzielona na części (%1), z tym samym wynikiem.</translation></message>
<message><source>Memory, disk and network</source><translation>Pamięć, dysk i sieć</translation></message>
<message><source>Mend its rights, or choose another place.</source><translation>Popraw uprawnienia albo wybierz inne miejsce.</translation></message>
<message><source>Mend that line, or rename the file.</source><translation>Popraw ten wiersz albo zmień nazwę pliku.</translation></message>
<message><source>Mend the links, or choose another place.</source><translation>Popraw dowiązania albo wybierz inne miejsce.</translation></message>
<message><source>Mini sudoku</source><translation>Mini-sudoku</translation></message>
<message><source>Mismatch</source><translation>Niezgodny</translation></message>
<message><source>Model</source><translation>Model</translation></message>
<message><source>Models</source><translation>Modele</translation></message>
<message><source>Models and saved states take %1 GB, above the limit of %2 GB: what is left is needed.</source><translation>Modele i zapisane stany zajmują %1 GB, ponad limit %2 GB: to, co zostało, jest potrzebne.</translation></message>
<message><source>Models of other computers</source><translation>Modele innych komputerów</translation></message>
<message><source>Models of type %1 need another version of MLX.</source><translation>Modele typu %1 wymagają innej wersji MLX.</translation></message>
<message><source>Models of type %1 need torch, which is not installed.</source><translation>Modele typu %1 wymagają torch, a nie jest zainstalowane.</translation></message>
<message><source>Models of type %1 need transformers, which is not installed.</source><translation>Modele typu %1 wymagają transformers, a nie jest zainstalowane.</translation></message>
<message><source>Models that were quantised for MLX are trained on Macs with Apple Silicon only.</source><translation>Modele skwantyzowane dla MLX można trenować tylko na Macach z Apple Silicon.</translation></message>
<message><source>Modulo grid</source><translation>Siatka modulo</translation></message>
<message><source>Mon</source><translation>pon</translation></message>
<message><source>Monday</source><translation>Poniedziałek</translation></message>
<message><source>More</source><translation>Więcej</translation></message>
<message><source>More questions from here on</source><translation>Odtąd więcej pytań</translation></message>
<message><source>More questions where its own answers are sometimes right, fewer where none or all of them are. Full bar: %1.</source><translation>Więcej pytań tam, gdzie jego odpowiedzi są czasem dobre, mniej tam, gdzie nie jest żadna albo są wszystkie. Pełny pasek: %1.</translation></message>
<message><source>Mossy Badger</source><translation>Mossy Badger</translation></message>
<message><source>Mount it for writing, or choose another place.</source><translation>Zamontuj do zapisu albo wybierz inne miejsce.</translation></message>
<message><source>Mute</source><translation>Wycisz</translation></message>
<message><source>Mute or block the chosen peer</source><translation>Wycisz lub zablokuj wybranego peera</translation></message>
<message><source>Muted</source><translation>Wyciszony</translation></message>
<message><source>Muting…</source><translation>Wyciszanie…</translation></message>
<message><source>My model</source><translation>Mój model</translation></message>
<message><source>Name</source><translation>Nazwa</translation></message>
<message><source>Name its column %1, and fill it in.</source><translation>Nazwij kolumnę %1 i ją wypełnij.</translation></message>
<message><source>Name of the run</source><translation>Nazwa przebiegu</translation></message>
<message><source>Name of the swarm</source><translation>Nazwa roju</translation></message>
<message><source>Name one with --replay, or leave --screenshot out.</source><translation>Podaj jeden przez --replay albo pomiń --screenshot.</translation></message>
<message><source>Name the columns on the first line: question,answer.</source><translation>Nazwij kolumny w pierwszym wierszu: question,answer.</translation></message>
<message><source>Name the gateway of a member in swarm.gateways.</source><translation>Podaj bramę jednego z członków w swarm.gateways.</translation></message>
<message><source>Names and what models write stay as they are.</source><translation>Nazwy i to, co piszą modele, pozostają bez zmian.</translation></message>
<message><source>Names can be chosen in private swarms.</source><translation>Nazwy można wybierać w prywatnych rojach.</translation></message>
<message><source>Names look like Qwen/Qwen2.5-0.5B-Instruct; a folder is the setting model.folder.</source><translation>Nazwy wyglądają tak: Qwen/Qwen2.5-0.5B-Instruct; folder to ustawienie model.folder.</translation></message>
<message><source>Names of programs, separated by commas.</source><translation>Nazwy programów, oddzielone przecinkami.</translation></message>
<message><source>Names of specialties of the swarm, separated by commas. Empty: all of them.</source><translation>Nazwy specjalności roju, rozdzielone przecinkami. Puste: wszystkie.</translation></message>
<message><source>Needs a free account</source><translation>Wymaga darmowego konta</translation></message>
<message><source>Needs at least %1 GB of memory; Waggle may use %2 GB</source><translation>Wymaga co najmniej %1 GB pamięci; Waggle może użyć %2 GB</translation></message>
<message><source>Network</source><translation>Sieć</translation></message>
<message><source>Network and privacy</source><translation>Sieć i prywatność</translation></message>
<message><source>Never</source><translation>Nigdy</translation></message>
<message><source>Never connects directly; uses the gateways under Connection details.</source><translation>Nigdy nie łączy się bezpośrednio; używa bram podanych w „Szczegółach połączenia”.</translation></message>
<message><source>New each time</source><translation>Za każdym razem nowe</translation></message>
<message><source>New identity</source><translation>Nowa tożsamość</translation></message>
<message><source>New questions</source><translation>Nowe pytania</translation></message>
<message><source>Newer than Qwen3, and works in many languages.</source><translation>Nowszy niż Qwen3 i działa w wielu językach.</translation></message>
<message><source>Nine specialties. Anyone may join; you train alone until someone does.</source><translation>Dziewięć specjalności. Każdy może dołączyć; trenujesz bez innych, dopóki ktoś nie dołączy.</translation></message>
<message><source>No</source><translation>Nie</translation></message>
<message><source>No address is known yet at which others could reach you.</source><translation>Nie jest jeszcze znany adres, pod którym inni mogliby się z Tobą połączyć.</translation></message>
<message><source>No answer stood out, so nothing was learned.</source><translation>Żadna odpowiedź się nie wyróżniała, więc niczego się nie nauczył.</translation></message>
<message><source>No answers are shared. You can join a swarm later.</source><translation>Żadne odpowiedzi nie są udostępniane. Do roju można dołączyć później.</translation></message>
<message><source>No battery found.</source><translation>Nie znaleziono baterii.</translation></message>
<message><source>No checkpoint is left that it follows.</source><translation>Nie ma już punktu kontrolnego, po którym następuje.</translation></message>
<message><source>No downloads; %1 are free</source><translation>Brak pobranych plików; wolne: %1</translation></message>
<message><source>No engine is running for this folder.</source><translation>Dla tego folderu nie działa żaden silnik.</translation></message>
<message><source>No gateway of this swarm answers.</source><translation>Żadna brama tego roju nie odpowiada.</translation></message>
<message><source>No limit</source><translation>Bez limitu</translation></message>
<message><source>No line has these words.</source><translation>Żaden wiersz nie zawiera tych słów.</translation></message>
<message><source>No model can be run: %1.</source><translation>Nie można uruchomić żadnego modelu: %1.</translation></message>
<message><source>No model is loaded.</source><translation>Żaden model nie jest wczytany.</translation></message>
<message><source>No model that Waggle can train matches. Try a shorter name.</source><translation>Żaden model, który Waggle potrafi trenować, nie pasuje. Spróbuj krótszej nazwy.</translation></message>
<message><source>No other model has scores on this computer.</source><translation>Żaden inny model nie ma wyników na tym komputerze.</translation></message>
<message><source>No program fills the screen any more.</source><translation>Żaden program nie zajmuje już całego ekranu.</translation></message>
<message><source>No program fills the screen.</source><translation>Żaden program nie zajmuje całego ekranu.</translation></message>
<message><source>No question was found that is never trained on.</source><translation>Nie znaleziono pytania, na którym nigdy się nie trenuje.</translation></message>
<message><source>No question was found that others take.</source><translation>Nie znaleziono pytania, które inni przyjmą.</translation></message>
<message><source>No race yet</source><translation>Jeszcze bez wyścigu</translation></message>
<message><source>No round has been played here yet.</source><translation>Nie rozegrano tu jeszcze żadnej rundy.</translation></message>
<message><source>No round is being played</source><translation>Nie trwa żadna runda</translation></message>
<message><source>No round yet</source><translation>Nie ma jeszcze rundy</translation></message>
<message><source>No rounds for %1</source><translation>Bez rund przez %1</translation></message>
<message><source>No score yet: it is measured before the first round and then every few rounds.</source><translation>Nie ma jeszcze wyniku: pomiar jest przed pierwszą rundą, a potem co kilka rund.</translation></message>
<message><source>No seed of this swarm has its charter.</source><translation>Żaden węzeł startowy tego roju nie ma jego karty.</translation></message>
<message><source>No setting has these words.</source><translation>Żadne ustawienie nie zawiera tych słów.</translation></message>
<message><source>No state of this model has been saved yet.</source><translation>Nie zapisano jeszcze żadnego stanu tego modelu.</translation></message>
<message><source>No window started the engine, so none stops it. Pausing holds as ever.</source><translation>Żadne okno nie uruchomiło silnika, więc żadne go nie zatrzyma. Pauza działa jak zawsze.</translation></message>
<message><source>Nobody answered at its addresses just now, but it was met before. You can join, and wait for others there.</source><translation>Pod jego adresami nikt teraz nie odpowiedział, ale był już kontakt z tym rojem. Możesz dołączyć i poczekać tam na innych.</translation></message>
<message><source>Nobody answers (tried %1): the others may be off, or a firewall is in the way.</source><translation>Nikt nie odpowiada (sprawdzono %1): inni mogą być offline albo przeszkadza zapora.</translation></message>
<message><source>Nobody answers at the addresses of this invite.</source><translation>Pod adresami z tego zaproszenia nikt nie odpowiada.</translation></message>
<message><source>Nobody else has them now. Try again later, or ask for a newer invite.</source><translation>Nikt inny ich teraz nie ma. Spróbuj później albo poproś o nowsze zaproszenie.</translation></message>
<message><source>Nobody else is here yet</source><translation>Nikogo innego jeszcze tu nie ma</translation></message>
<message><source>Nobody else is in %1 now. It needs nothing from you.</source><translation>W roju %1 nie ma teraz nikogo innego. Nie musisz nic robić.</translation></message>
<message><source>Nobody else is sharing right now, so you train alone.</source><translation>Nikt inny teraz nie udostępnia, więc trenujesz solo.</translation></message>
<message><source>Nobody gave the questions of %1: %2 of %3 parts are missing.</source><translation>Nikt nie przekazał pytań roju %1: brakujące części: %2 z %3.</translation></message>
<message><source>Nobody shares with you yet. Invite someone to find out.</source><translation>Nikt jeszcze się z Tobą nie dzieli. Zaproś kogoś i się przekonaj.</translation></message>
<message><source>Nobody who trains it alone publishes answers: there is nothing yet to compare this with. %1 answers.</source><translation>Nikt, kto trenuje go solo, nie publikuje odpowiedzi: nie ma jeszcze z czym porównać. Odpowiedzi: %1.</translation></message>
<message><source>Nobody who trains it with peers publishes answers yet: this is alone. %1 answers.</source><translation>Nikt, kto trenuje go z peerami, nie publikuje jeszcze odpowiedzi: to wynik solo. Odpowiedzi: %1.</translation></message>
<message><source>Nobody yet</source><translation>Jeszcze nikt</translation></message>
<message><source>None broke a rule.</source><translation>Żaden nie złamał reguł.</translation></message>
<message><source>None is right yet. It keeps trying, and learns from the first that are.</source><translation>Żadna nie jest jeszcze dobra. Próbuje dalej i uczy się z pierwszych dobrych.</translation></message>
<message><source>None of %1 peers matches</source><translation>Żaden z peerów (%1) nie pasuje</translation></message>
<message><source>None of your chosen programs runs.</source><translation>Żaden z wybranych przez Ciebie programów nie działa.</translation></message>
<message><source>None of your last answers could be shared: their size or a character in them may not travel.</source><translation>Żadnej z Twoich ostatnich odpowiedzi nie można było udostępnić: ich rozmiar lub któryś znak na to nie pozwala.</translation></message>
<message><source>Normal</source><translation>Normalny</translation></message>
<message><source>Not accepted yet</source><translation>Niezaakceptowana</translation></message>
<message><source>Not asked yet who is there.</source><translation>Jeszcze nie pytano, kto tam jest.</translation></message>
<message><source>Not checked</source><translation>Nie sprawdzono</translation></message>
<message><source>Not connected</source><translation>Brak połączenia</translation></message>
<message><source>Not every disk takes sockets: choose a folder on another with --home.</source><translation>Nie każdy dysk obsługuje gniazda: wybierz folder na innym przez --home.</translation></message>
<message><source>Not everything was removed</source><translation>Nie wszystko zostało usunięte</translation></message>
<message><source>Not measured yet</source><translation>Jeszcze nie zmierzono</translation></message>
<message><source>Not now</source><translation>Nie teraz</translation></message>
<message><source>Not quite: it is %1.</source><translation>Nie całkiem: to %1.</translation></message>
<message><source>Not read yet</source><translation>Jeszcze nie odczytano</translation></message>
<message><source>Not reduced</source><translation>Zwykły</translation></message>
<message><source>Not saved: %1</source><translation>Nie zapisano: %1</translation></message>
<message><source>Not saved: %1 cannot be written</source><translation>Nie zapisano: nie można zapisać %1</translation></message>
<message><source>Not set</source><translation>Nie podano</translation></message>
<message><source>Not training</source><translation>Nie trenuje</translation></message>
<message><source>Not training.</source><translation>Nie trenuje.</translation></message>
<message><source>Not used for learning this round.</source><translation>W tej rundzie nie posłużyło do nauki.</translation></message>
<message><source>Not yet</source><translation>Jeszcze nie</translation></message>
<message><source>Nothing has been joined yet.</source><translation>Jeszcze do niczego nie dołączono.</translation></message>
<message><source>Nothing has happened yet.</source><translation>Nic się jeszcze nie wydarzyło.</translation></message>
<message><source>Nothing has left this computer since Waggle started.</source><translation>Od uruchomienia Waggle nic nie opuściło tego komputera.</translation></message>
<message><source>Nothing here for this choice yet.</source><translation>Dla tego wyboru nic tu jeszcze nie ma.</translation></message>
<message><source>Nothing is chosen; everything stays.</source><translation>Nic nie wybrano; wszystko zostaje.</translation></message>
<message><source>Nothing is compared yet: take part, and your model's answers are published and compared with those of others who do.</source><translation>Nie ma jeszcze czego porównać: weź udział, a odpowiedzi Twojego modelu zostaną opublikowane i porównane z odpowiedziami innych uczestników.</translation></message>
<message><source>Nothing is deleted.</source><translation>Nic nie zostanie usunięte.</translation></message>
<message><source>Nothing is holding Waggle back.</source><translation>Nic nie wstrzymuje Waggle.</translation></message>
<message><source>Nothing is saved in %1 yet.</source><translation>W %1 nic jeszcze nie zapisano.</translation></message>
<message><source>Nothing is sent and nothing received.</source><translation>Nic nie jest wysyłane ani odbierane.</translation></message>
<message><source>Nothing is sent or received until training runs again.</source><translation>Nic nie jest wysyłane ani odbierane, dopóki trening znów nie ruszy.</translation></message>
<message><source>Nothing is trained until you choose a swarm.</source><translation>Nic nie jest trenowane, dopóki nie wybierzesz roju.</translation></message>
<message><source>Nothing is trained yet.</source><translation>Jeszcze nic nie wytrenowano.</translation></message>
<message><source>Nothing leaves this computer</source><translation>Nic nie opuszcza tego komputera</translation></message>
<message><source>Nothing to learn in this round: no answer stood out.</source><translation>W tej rundzie nie ma się czego uczyć: żadna odpowiedź się nie wyróżniała.</translation></message>
<message><source>Nothing was changed.</source><translation>Nic nie zostało zmienione.</translation></message>
<message><source>Nothing was exchanged with it yet.</source><translation>Nie było z nim jeszcze żadnej wymiany.</translation></message>
<message><source>Nothing was learned for %1 rounds: all answers to one question were equally good.</source><translation>Brak postępów w nauce, rundy: %1. Wszystkie odpowiedzi na jedno pytanie były równie dobre.</translation></message>
<message><source>Nothing was learned for %1 rounds: hardly any answer stood in the answer tags.</source><translation>Brak postępów w nauce, rundy: %1. Prawie żadna odpowiedź nie miała znaczników odpowiedzi.</translation></message>
<message><source>Nothing was learned for %1 rounds: most answers were too long and were cut off.</source><translation>Brak postępów w nauce, rundy: %1. Większość odpowiedzi była za długa i została ucięta.</translation></message>
<message><source>Nothing was learned for %1 rounds: nearly all answers are right already.</source><translation>Brak postępów w nauce, rundy: %1. Prawie wszystkie odpowiedzi są już dobre.</translation></message>
<message><source>Nothing was learned for %1 rounds: nearly all answers were wrong.</source><translation>Brak postępów w nauce, rundy: %1. Prawie wszystkie odpowiedzi były złe.</translation></message>
<message><source>Nothing was learned for %1 rounds: the starter hardly uses the answer tags yet, but finds them in time.</source><translation>Brak postępów w nauce, rundy: %1. Starter prawie nie używa jeszcze znaczników odpowiedzi, ale z czasem je odkryje.</translation></message>
<message><source>Nothing was learned for %1 rounds: the steps were left out, as their numbers were not finite.</source><translation>Brak postępów w nauce, rundy: %1. Kroki pominięto, bo ich liczby nie były skończone.</translation></message>
<message><source>Nothing was learned from peers yet.</source><translation>Niczego jeszcze nie nauczono się od peerów.</translation></message>
<message><source>Nothing was learned in this round: its step was left out.</source><translation>W tej rundzie nie było nauki: jej krok został pominięty.</translation></message>
<message><source>Nothing was lost.</source><translation>Nic nie przepadło.</translation></message>
<message><source>Nothing was lost. Closing other programs makes room.</source><translation>Nic nie przepadło. Zamknięcie innych programów zwolni miejsce.</translation></message>
<message><source>Nothing was pushed.</source><translation>Nic nie zostało wysłane.</translation></message>
<message><source>Nothing was removed</source><translation>Nic nie usunięto</translation></message>
<message><source>Nothing will be lost.</source><translation>Nic nie przepadnie.</translation></message>
<message><source>Nothing yet today</source><translation>Dziś jeszcze nic</translation></message>
<message><source>Notifications</source><translation>Powiadomienia</translation></message>
<message><source>Nov</source><translation>lis</translation></message>
<message><source>Now</source><translation>Teraz</translation></message>
<message numerus="yes"><source>Now, %n rounds</source><translation><numerusform>Teraz, %n runda</numerusform><numerusform>Teraz, %n rundy</numerusform><numerusform>Teraz, %n rund</numerusform></translation></message>
<message><source>Now, untrained</source><translation>Teraz, bez treningu</translation></message>
<message><source>Number</source><translation>Liczba</translation></message>
<message><source>Number filtering</source><translation>Filtrowanie liczb</translation></message>
<message><source>Oct</source><translation>paź</translation></message>
<message><source>Of %1 new questions, sharing got %2 right and alone %3.</source><translation>Na %1 nowych pytań razem odpowiedziały dobrze na %2, osobno na %3.</translation></message>
<message><source>Of one step. Too high a rate ruins a model.</source><translation>Dla jednego kroku. Zbyt wysokie tempo psuje model.</translation></message>
<message><source>Off</source><translation>Wyłączone</translation></message>
<message><source>On</source><translation>Włączone</translation></message>
<message><source>On %1</source><translation>Na %1</translation></message>
<message><source>On questions your model never trains on</source><translation>Na pytaniach, na których Twój model nigdy nie trenuje</translation></message>
<message><source>On the computer that the engine runs on, `waggle export FOLDER` writes it.</source><translation>Na komputerze, na którym działa silnik, zapisuje go `waggle export FOLDER`.</translation></message>
<message><source>On this computer</source><translation>Na tym komputerze</translation></message>
<message><source>Once for each specialty.</source><translation>Raz na każdą specjalność.</translation></message>
<message><source>One by one</source><translation>Po kolei</translation></message>
<message><source>One file, encrypted with a passphrase. Whoever has both is you. Without the passphrase nobody opens it, and there is no other way in: keep it as you keep a key.</source><translation>Jeden plik, zaszyfrowany hasłem. Kto ma jedno i drugie, może być Tobą. Bez hasła nikt go nie otworzy i nie ma innego sposobu: strzeż go jak klucza.</translation></message>
<message numerus="yes"><source>One hexagon for each of %n specialties</source><translation><numerusform>Jeden sześciokąt na %n specjalność</numerusform><numerusform>Po jednym sześciokącie na każdą z %n specjalności</numerusform><numerusform>Po jednym sześciokącie na każdą z %n specjalności</numerusform></translation></message>
<message><source>One kind of question, such as fractions.</source><translation>Jeden rodzaj zadań, na przykład ułamki.</translation></message>
<message><source>One of several choices</source><translation>Jedna z kilku opcji</translation></message>
<message><source>Only a marked answer counts. Otherwise, a model could list guesses until one is right.</source><translation>Liczy się tylko oznaczona odpowiedź. Inaczej model mógłby zgadywać, aż trafi.</translation></message>
<message><source>Only a node that trains alone with a seed can: begin a new one with swarm.solo=true and learning.seed=1.</source><translation>Da się to tylko z węzłem, który trenuje samodzielnie z ziarnem losowym: zacznij nowy z swarm.solo=true i learning.seed=1.</translation></message>
<message><source>Only its members see it, beside eight characters of your key</source><translation>Widzą ją tylko jego członkowie, obok ośmiu znaków Twojego klucza</translation></message>
<message><source>Only numbers have a tolerance: correct the answer, delete the question, or leave the tolerance out.</source><translation>Tolerancję mają tylko liczby: popraw odpowiedź, usuń pytanie albo pomiń tolerancję.</translation></message>
<message><source>Only these specialties</source><translation>Tylko te specjalności</translation></message>
<message><source>Only this computer</source><translation>Tylko ten komputer</translation></message>
<message><source>Only while your model trains; you chose it in Settings.</source><translation>Tylko gdy Twój model trenuje; tak wybrano w Ustawieniach.</translation></message>
<message><source>Open QR picture</source><translation>Otwórz obraz QR</translation></message>
<message><source>Open Waggle</source><translation>Otwórz Waggle</translation></message>
<message><source>Open a file or picture</source><translation>Otwórz plik lub obraz</translation></message>
<message><source>Open a folder</source><translation>Otwórz folder</translation></message>
<message><source>Open a picture of the QR code</source><translation>Otwórz obraz z kodem QR</translation></message>
<message><source>Open an invite</source><translation>Otwórz zaproszenie</translation></message>
<message><source>Open its invite again.</source><translation>Otwórz jego zaproszenie ponownie.</translation></message>
<message><source>Open its invite first.</source><translation>Najpierw otwórz jego zaproszenie.</translation></message>
<message><source>Open its page</source><translation>Otwórz stronę</translation></message>
<message><source>Open or quit it here, in the menu bar.</source><translation>Otworzysz i zakończysz je tutaj, na pasku menu.</translation></message>
<message><source>Open or quit it here, in the tray.</source><translation>Otworzysz i zakończysz je tutaj, w zasobniku.</translation></message>
<message><source>Or set model.precision to float32.</source><translation>Albo ustaw model.precision na float32.</translation></message>
<message><source>Order by</source><translation>Sortuj według</translation></message>
<message><source>Other computers are slow to answer. Training starts even if none does.</source><translation>Inne komputery odpowiadają powoli. Trening zacznie się, nawet jeśli żaden nie odpowie.</translation></message>
<message><source>Other programs and networks</source><translation>Inne programy i sieci</translation></message>
<message><source>Other swarms</source><translation>Inne roje</translation></message>
<message><source>Others can connect to you.</source><translation>Inni mogą się z Tobą połączyć.</translation></message>
<message><source>Others on your local network can then see that Waggle runs here, and in which swarm.</source><translation>Inni w Twojej sieci lokalnej zobaczą wtedy, że działa tu Waggle i w którym roju.</translation></message>
<message><source>Others on your network can also open %1</source><translation>Inni w Twojej sieci mogą też otworzyć %1</translation></message>
<message><source>Others see it before they join</source><translation>Inni widzą ją, zanim dołączą</translation></message>
<message><source>Others see it before they join.</source><translation>Inni widzą ją, zanim dołączą.</translation></message>
<message><source>Otherwise closing ends Waggle.</source><translation>W przeciwnym razie zamknięcie kończy Waggle.</translation></message>
<message><source>Own charts</source><translation>Osobne wykresy</translation></message>
<message><source>Own examples</source><translation>Własne</translation></message>
<message><source>Own examples to learn from</source><translation>Własne przykłady do nauki</translation></message>
<message><source>Own questions</source><translation>Własne pytania</translation></message>
<message><source>Pages of a class</source><translation>Strony klasy</translation></message>
<message><source>Pages; arrow keys go up and down</source><translation>Strony; klawisze strzałek przechodzą w górę i w dół</translation></message>
<message><source>Palindrome generation</source><translation>Tworzenie palindromów</translation></message>
<message><source>Passphrase</source><translation>Hasło</translation></message>
<message><source>Paste an address of huggingface.co, a name such as Qwen/Qwen3-0.6B, or the path of a folder.</source><translation>Wklej adres z huggingface.co, nazwę, na przykład Qwen/Qwen3-0.6B, albo ścieżkę folderu.</translation></message>
<message><source>Paste the invite link, or a picture of its QR code</source><translation>Wklej link zaproszenia albo obraz jego kodu QR</translation></message>
<message><source>Paste the link first.</source><translation>Najpierw wklej link.</translation></message>
<message><source>Paste the link, then press Start. You'll see the swarm before you join.</source><translation>Wklej link i naciśnij Start. Zobaczysz rój, zanim dołączysz.</translation></message>
<message><source>Paths in a star</source><translation>Ścieżki w gwieździe</translation></message>
<message><source>Patterns</source><translation>Wzorce</translation></message>
<message><source>Pause</source><translation>Wstrzymaj</translation></message>
<message><source>Pause during full-screen apps</source><translation>Wstrzymuj przy programach pełnoekranowych</translation></message>
<message><source>Pause for a while</source><translation>Wstrzymaj na jakiś czas</translation></message>
<message><source>Pause list</source><translation>Zatrzymaj listę</translation></message>
<message><source>Pause now</source><translation>Wstrzymaj teraz</translation></message>
<message><source>Pause on battery</source><translation>Wstrzymuj przy pracy na baterii</translation></message>
<message><source>Pause on metered networks</source><translation>Wstrzymuj w sieciach z limitem danych</translation></message>
<message><source>Pause until a moment instead.</source><translation>Zamiast tego wstrzymaj do wybranej godziny.</translation></message>
<message><source>Pause when the processor is hot</source><translation>Wstrzymuj, gdy procesor jest gorący</translation></message>
<message><source>Pause whenever you like: on Home or with %1.</source><translation>Wstrzymuj, kiedy chcesz: na stronie głównej albo przez %1.</translation></message>
<message><source>Pause while these programs run</source><translation>Wstrzymuj, gdy działają te programy</translation></message>
<message><source>Pause, or resume</source><translation>Wstrzymaj lub wznów</translation></message>
<message><source>Paused by you</source><translation>Wstrzymano ręcznie</translation></message>
<message><source>Paused until %1.</source><translation>Wstrzymano do %1.</translation></message>
<message><source>Paused until you are away.</source><translation>Wstrzymano do czasu, aż odejdziesz.</translation></message>
<message><source>Paused.</source><translation>Wstrzymano.</translation></message>
<message><source>Pauses above this temperature.</source><translation>Wstrzymuje powyżej tej temperatury.</translation></message>
<message><source>Pauses until midnight once it has used this much (estimated).</source><translation>Wstrzymuje do północy, gdy zużyje tyle energii (szacunek).</translation></message>
<message><source>Pauses until nobody has touched it for this long.</source><translation>Pauza, aż nikt nie dotknie go przez ten czas.</translation></message>
<message><source>Pay for the answer tags</source><translation>Nagradzaj znaczniki odpowiedzi</translation></message>
<message><source>Peer</source><translation>Peer</translation></message>
<message><source>Peers</source><translation>Peery</translation></message>
<message><source>Peers right first</source><translation>Inni byli pierwsi</translation></message>
<message><source>Peers' examples to learn from</source><translation>Przykłady od peerów do nauki</translation></message>
<message><source>Peers' examples to learn from: %1 on average</source><translation>Przykłady peerów do nauki: średnio %1</translation></message>
<message><source>People join only through your link, and a link cannot be taken back.</source><translation>Dołącza się tylko przez Twój link, a linku nie da się cofnąć.</translation></message>
<message><source>Per round, if available.</source><translation>Na rundę, jeśli są dostępne.</translation></message>
<message><source>Per round.</source><translation>Na rundę.</translation></message>
<message><source>Pick</source><translation>Wybór</translation></message>
<message><source>Picture (*.png)</source><translation>Obraz (*.png)</translation></message>
<message><source>Picture of the swarm: </source><translation>Obrazek roju: </translation></message>
<message><source>Piece %1 of the questions is damaged.</source><translation>Część %1 pytań jest uszkodzona.</translation></message>
<message><source>Place</source><translation>Miejsce</translation></message>
<message><source>Play again</source><translation>Odtwórz ponownie</translation></message>
<message><source>Point at a day, or use the arrow keys.</source><translation>Wskaż dzień albo użyj klawiszy strzałek.</translation></message>
<message><source>Polski</source><translation>Polski</translation></message>
<message><source>Port</source><translation>Port</translation></message>
<message><source>Port %1 is already in use.</source><translation>Port %1 jest już zajęty.</translation></message>
<message><source>Port of the status page</source><translation>Port strony stanu</translation></message>
<message><source>Power and heat</source><translation>Prąd i ciepło</translation></message>
<message><source>Power function</source><translation>Potęgowanie</translation></message>
<message><source>Precision</source><translation>Precyzja</translation></message>
<message><source>Preparing the link: a few seconds.</source><translation>Przygotowywanie linku: kilka sekund.</translation></message>
<message><source>Preparing the model</source><translation>Przygotowanie modelu</translation></message>
<message><source>Preview</source><translation>Pokaż podgląd</translation></message>
<message><source>Preview %1</source><translation>Podgląd: %1</translation></message>
<message><source>Price of a kWh</source><translation>Cena kWh</translation></message>
<message><source>Prime factorization</source><translation>Rozkład na czynniki pierwsze</translation></message>
<message><source>Priority</source><translation>Priorytet</translation></message>
<message><source>Privacy</source><translation>Prywatność</translation></message>
<message><source>Private</source><translation>Prywatny</translation></message>
<message><source>Private, with easy questions, short rounds and a page for the projector.</source><translation>Prywatny, z łatwymi pytaniami, krótkimi rundami i stroną na rzutnik.</translation></message>
<message><source>Private: only with your invite</source><translation>Prywatny: tylko z Twoim zaproszeniem</translation></message>
<message><source>Probably this one: you joined it yourself.</source><translation>Prawdopodobnie ten: dołączenie do niego było Twoim wyborem.</translation></message>
<message><source>Problem</source><translation>Problem</translation></message>
<message><source>Processor</source><translation>Procesor</translation></message>
<message><source>Processor cores</source><translation>Rdzenie procesora</translation></message>
<message><source>Processors</source><translation>Procesory</translation></message>
<message><source>Products</source><translation>Iloczyny</translation></message>
<message><source>Profile</source><translation>Użycie komputera</translation></message>
<message><source>Programs to chat in, such as LM Studio and Ollama, do not know models like this one.</source><translation>Programy do czatu, takie jak LM Studio i Ollama, nie obsługują takich modeli.</translation></message>
<message><source>Programs to chat in, such as LM Studio and Ollama, open %1 there.</source><translation>Programy do czatu, takie jak LM Studio i Ollama, otwierają tam %1.</translation></message>
<message><source>Progress</source><translation>Postępy</translation></message>
<message><source>Push to owner/name.</source><translation>Wyślij do owner/name.</translation></message>
<message><source>Put a copy of it back, or rename it to begin with the default settings.</source><translation>Przywróć jego kopię albo zmień mu nazwę, aby zacząć od ustawień domyślnych.</translation></message>
<message><source>Put a text that contains "%1" in double quotes.</source><translation>Umieść tekst zawierający "%1" w podwójnych cudzysłowach.</translation></message>
<message><source>Put its files back, or choose another model.</source><translation>Przywróć jego pliki albo wybierz inny model.</translation></message>
<message><source>Question</source><translation>Pytanie</translation></message>
<message><source>Questions and answers</source><translation>Pytania i odpowiedzi</translation></message>
<message><source>Questions and answers appear here as soon as the first round begins.</source><translation>Pytania i odpowiedzi pojawią się tu, gdy tylko zacznie się pierwsza runda.</translation></message>
<message><source>Questions and answers appear here as soon as the next round begins.</source><translation>Pytania i odpowiedzi pojawią się tu, gdy tylko zacznie się następna runda.</translation></message>
<message><source>Questions and answers appear here when training runs again.</source><translation>Pytania i odpowiedzi pojawią się tutaj, gdy trening znów ruszy.</translation></message>
<message><source>Questions and answers appear here when you resume.</source><translation>Pytania i odpowiedzi pojawią się tu, gdy wznowisz.</translation></message>
<message><source>Questions answered</source><translation>Pytania z odpowiedzią</translation></message>
<message><source>Questions of a test</source><translation>Pytania w teście</translation></message>
<message><source>Questions per round</source><translation>Pytania na rundę</translation></message>
<message><source>Questions that your model never trains on: the honest test of what it learned.</source><translation>Pytania, na których Twój model nigdy nie trenuje: uczciwy sprawdzian tego, czego się nauczył.</translation></message>
<message><source>Quiet</source><translation>Ciche</translation></message>
<message><source>Quit</source><translation>Zakończ</translation></message>
<message><source>Quit; training keeps running</source><translation>Zakończ; trening działa dalej</translation></message>
<message><source>Race again</source><translation>Ścigaj się ponownie</translation></message>
<message><source>Raise it, or remove it, in Settings.</source><translation>Zwiększ go albo usuń w ustawieniach.</translation></message>
<message><source>Ransom note</source><translation>List z żądaniem okupu</translation></message>
<message><source>Read %1 again</source><translation>Odczytaj ponownie %1</translation></message>
<message><source>Read it again</source><translation>Odczytaj ponownie</translation></message>
<message><source>Read out what happened</source><translation>Odczytuj na głos, co się stało</translation></message>
<message><source>Reading %1.</source><translation>Odczytywanie %1.</translation></message>
<message><source>Reading the picture takes too long.</source><translation>Odczytywanie obrazu trwa zbyt długo.</translation></message>
<message><source>Reading the questions.</source><translation>Odczytywanie pytań.</translation></message>
<message><source>Recent weeks</source><translation>Ostatnie tygodnie</translation></message>
<message><source>Recommended here</source><translation>Polecany tutaj</translation></message>
<message><source>Recommended model (optional)</source><translation>Zalecany model (opcjonalnie)</translation></message>
<message><source>Reconnecting</source><translation>Ponowne łączenie</translation></message>
<message><source>Record of events</source><translation>Zapis zdarzeń</translation></message>
<message><source>Reduce motion</source><translation>Ogranicz ruch</translation></message>
<message><source>Reduced</source><translation>Ograniczony</translation></message>
<message><source>Relay</source><translation>Przekaźnik</translation></message>
<message><source>Remove</source><translation>Usuń</translation></message>
<message><source>Remove %1</source><translation>Usuń %1</translation></message>
<message><source>Remove %1 from this computer</source><translation>Usuń %1 z tego komputera</translation></message>
<message><source>Remove it, or choose a folder with a shorter name with --home.</source><translation>Usuń go albo przez --home wybierz folder o krótszej nazwie.</translation></message>
<message><source>Remove the one that should not be used.</source><translation>Usuń to, czego nie należy używać.</translation></message>
<message><source>Remove them now</source><translation>Usuń je teraz</translation></message>
<message><source>Remove these</source><translation>Usuń te</translation></message>
<message><source>Remove: %1, %2</source><translation>Do usunięcia: %1, %2</translation></message>
<message><source>Removed: %1.</source><translation>Usunięto: %1.</translation></message>
<message><source>Removing</source><translation>Usuwanie</translation></message>
<message><source>Rename one of them, or leave it out.</source><translation>Zmień nazwę jednej z nich albo ją pomiń.</translation></message>
<message><source>Replay of a recorded run</source><translation>Odtwarzanie nagranego przebiegu</translation></message>
<message><source>Replay of a recorded run: it has ended</source><translation>Odtwarzanie nagranego przebiegu: dobiegło końca</translation></message>
<message><source>Replay successes</source><translation>Powtarzaj sukcesy</translation></message>
<message><source>Report</source><translation>Raport</translation></message>
<message><source>Reset %1 to: %2</source><translation>Przywróć %1 do: %2</translation></message>
<message><source>Restarting</source><translation>Ponowny start</translation></message>
<message><source>Restore a backup</source><translation>Przywróć kopię</translation></message>
<message><source>Restore an identity</source><translation>Przywróć tożsamość</translation></message>
<message><source>Restore it from a copy, or with `waggle identity restore` from a backup, or move it away: Waggle then makes a new identity, which peers will not know.</source><translation>Przywróć go z kopii albo poleceniem `waggle identity restore` z kopii zapasowej, albo przenieś go gdzie indziej: Waggle utworzy wtedy nową tożsamość, której peery nie będą znać.</translation></message>
<message><source>Restored mutes and blocks: %1. The old file is kept as %2.</source><translation>Przywrócone wyciszenia i blokady: %1. Stary plik zostaje jako %2.</translation></message>
<message><source>Result:</source><translation>Wynik:</translation></message>
<message><source>Results on Hugging Face for “%1”</source><translation>Wyniki w Hugging Face dla „%1”</translation></message>
<message><source>Results vary from race to race.</source><translation>Wyniki różnią się między wyścigami.</translation></message>
<message><source>Resume</source><translation>Wznów</translation></message>
<message><source>Resume it when you like. The old file is kept as %1.</source><translation>Wznów, kiedy chcesz. Stary plik zostaje jako %1.</translation></message>
<message><source>Resume list</source><translation>Wznów listę</translation></message>
<message><source>Reward</source><translation>Nagroda</translation></message>
<message><source>Reward by round; the table shows the same</source><translation>Nagroda według rund; tabela pokazuje to samo</translation></message>
<message><source>Reward by specialty</source><translation>Nagroda według specjalności</translation></message>
<message><source>Reward per answer, 0 to 1. Bold: trend. Faint: each round.</source><translation>Nagroda za odpowiedź, od 0 do 1. Gruba: trend. Blada: każda runda.</translation></message>
<message><source>Right</source><translation>Dobrze</translation></message>
<message><source>Right answer</source><translation>Dobra odpowiedź</translation></message>
<message><source>Right answers by round, sharing and alone</source><translation>Dobre odpowiedzi według rund, z wymianą i solo</translation></message>
<message><source>Right answers by rounds of each computer's own, with the 95% interval. %1 answers.</source><translation>Dobre odpowiedzi według własnych rund każdego komputera, z przedziałem ufności 95 %. Odpowiedzi: %1.</translation></message>
<message><source>Right answers to new questions, by round</source><translation>Dobre odpowiedzi na nowe pytania, według rund</translation></message>
<message><source>Right answers while training</source><translation>Dobre odpowiedzi podczas treningu</translation></message>
<message><source>Right answers with peers and alone, by rounds</source><translation>Dobre odpowiedzi z peerami i solo, według rund</translation></message>
<message><source>Right!</source><translation>Dobrze!</translation></message>
<message><source>Rotate matrix</source><translation>Obracanie macierzy</translation></message>
<message><source>Rotten oranges</source><translation>Zgniłe pomarańcze</translation></message>
<message><source>Round</source><translation>Runda</translation></message>
<message><source>Round %1</source><translation>Runda %1</translation></message>
<message><source>Round %1 could not be saved: %2.</source><translation>Rundy %1 nie udało się zapisać: %2.</translation></message>
<message><source>Round %1 is running. Below: earlier rounds</source><translation>Trwa runda %1. Poniżej: wcześniejsze rundy</translation></message>
<message><source>Round %1 of %2</source><translation>Runda %1 z %2</translation></message>
<message><source>Round %1 taught something that is no number.</source><translation>Runda %1 nauczyła czegoś, co nie jest liczbą.</translation></message>
<message><source>Round %1, finished</source><translation>Runda %1, zakończona</translation></message>
<message><source>Round %1: reward %2</source><translation>Runda %1: nagroda %2</translation></message>
<message><source>Round %1: reward %2, %3 tokens in %4 s</source><translation>Runda %1: nagroda %2, tokeny: %3 w %4 s</translation></message>
<message><source>Round %1: your model is %2</source><translation>Runda %1: Twój model %2</translation></message>
<message><source>Round %2: %1 right</source><translation>Runda %2: %1 dobrze</translation></message>
<message><source>Rounds</source><translation>Rundy</translation></message>
<message><source>Rounds %2 to %3: %1 right</source><translation>Rundy od %2 do %3: %1 dobrze</translation></message>
<message><source>Rounds between two tests</source><translation>Rundy między dwoma testami</translation></message>
<message><source>Rounds; arrow keys go back and forth</source><translation>Rundy; strzałki przechodzą wstecz i naprzód</translation></message>
<message><source>Rule: %1</source><translation>Reguła: %1</translation></message>
<message><source>Run the self-test</source><translation>Uruchom autotest</translation></message>
<message><source>Runs are compared by rounds.</source><translation>Przebiegi są porównywane według rund.</translation></message>
<message><source>Saturday</source><translation>Sobota</translation></message>
<message><source>Save</source><translation>Zapisz</translation></message>
<message><source>Save a picture to share</source><translation>Zapisz obraz do udostępnienia</translation></message>
<message><source>Save as a file</source><translation>Zapisz jako plik</translation></message>
<message><source>Save it as UTF-8, or rename it.</source><translation>Zapisz go jako UTF-8 albo zmień mu nazwę.</translation></message>
<message><source>Save it as UTF-8.</source><translation>Zapisz go jako UTF-8.</translation></message>
<message><source>Save progress</source><translation>Zapisz postępy</translation></message>
<message><source>Save the file as UTF-8.</source><translation>Zapisz plik jako UTF-8.</translation></message>
<message><source>Save the file as text in UTF-8.</source><translation>Zapisz plik jako tekst w UTF-8.</translation></message>
<message><source>Save the invite</source><translation>Zapisz zaproszenie</translation></message>
<message><source>Save the model itself, not what wraps it: model.module.save_pretrained, for example.</source><translation>Zapisz sam model, a nie jego opakowanie: na przykład przez model.module.save_pretrained.</translation></message>
<message><source>Save the share card</source><translation>Zapisz kartę do udostępnienia</translation></message>
<message><source>Save the table as CSV (UTF-8).</source><translation>Zapisz tabelę jako CSV (UTF-8).</translation></message>
<message><source>Save what is on this disk, and check it.</source><translation>Zabezpiecz to, co jest na tym dysku, i sprawdź dysk.</translation></message>
<message><source>Saved to %1</source><translation>Zapisano: %1</translation></message>
<message><source>Saved to %1. Some older rounds are missing because the engine did not answer.</source><translation>Zapisano: %1. Brakuje części starszych rund, bo silnik nie odpowiedział.</translation></message>
<message><source>Say goodbye</source><translation>Pożegnaj się</translation></message>
<message><source>Say something, and compare your model with how it was before training.</source><translation>Napisz coś i porównaj swój model z tym, jaki był przed treningiem.</translation></message>
<message><source>Scales text and controls.</source><translation>Skaluje tekst i elementy sterujące.</translation></message>
<message><source>Score on new questions</source><translation>Wynik na nowych pytaniach</translation></message>
<message><source>Score on new questions by round; the table shows the same</source><translation>Wynik na nowych pytaniach według rund; tabela pokazuje to samo</translation></message>
<message><source>Search</source><translation>Szukaj</translation></message>
<message><source>Search Hugging Face, or name a model</source><translation>Przeszukaj Hugging Face albo podaj model</translation></message>
<message><source>Search, or paste a name, a huggingface.co address, a folder or a GGUF file</source><translation>Szukaj albo wklej nazwę, adres z huggingface.co, folder lub plik GGUF</translation></message>
<message><source>Searching Hugging Face.</source><translation>Przeszukiwanie Hugging Face.</translation></message>
<message><source>Sections of the settings</source><translation>Sekcje ustawień</translation></message>
<message><source>See progress</source><translation>Zobacz postępy</translation></message>
<message><source>See swarms</source><translation>Zobacz roje</translation></message>
<message><source>See the steps of a round</source><translation>Zobacz kroki rundy</translation></message>
<message><source>See what Waggle keeps on this computer, and choose what to remove.</source><translation>Zobacz, co Waggle przechowuje na tym komputerze, i wybierz, co usunąć.</translation></message>
<message><source>See what sharing does</source><translation>Zobacz, co daje wymiana</translation></message>
<message><source>See who was first</source><translation>Kto był pierwszy?</translation></message>
<message><source>See your identity</source><translation>Zobacz swoją tożsamość</translation></message>
<message><source>Seed</source><translation>Ziarno losowości</translation></message>
<message><source>Seen</source><translation>Kiedy</translation></message>
<message><source>Send</source><translation>Wyślij</translation></message>
<message><source>Send the link, or a picture of the code. The other person needs Waggle on their computer, and sees the swarm before they join.</source><translation>Wyślij link albo zdjęcie kodu. Druga osoba potrzebuje Waggle na swoim komputerze i zobaczy rój, zanim dołączy.</translation></message>
<message><source>Sep</source><translation>wrz</translation></message>
<message><source>Set</source><translation>Zbiór</translation></message>
<message><source>Set computer.device back to go on from it, or begin anew in a folder of its own with --home.</source><translation>Przywróć computer.device, aby kontynuować, albo zacznij od nowa we własnym folderze przez --home.</translation></message>
<message><source>Set computer.device to auto.</source><translation>Ustaw computer.device na auto.</translation></message>
<message><source>Set it aside and start</source><translation>Odłóż na bok i uruchom</translation></message>
<message><source>Set model.folder or model.name back, or give this model a folder of its own with --home.</source><translation>Przywróć model.folder lub model.name albo daj temu modelowi własny folder przez --home.</translation></message>
<message><source>Set model.training = "%1" to go on from it, or begin anew in a folder of its own with --home.</source><translation>Ustaw model.training = "%1", aby kontynuować, albo zacznij od nowa we własnym folderze przez --home.</translation></message>
<message><source>Set model.training to full, to lora or to auto.</source><translation>Ustaw model.training na full, lora lub auto.</translation></message>
<message><source>Set model.training to full.</source><translation>Ustaw model.training na full.</translation></message>
<message><source>Set model.training to lean.</source><translation>Ustaw model.training na lean.</translation></message>
<message><source>Set model.training to lora, or to auto.</source><translation>Ustaw model.training na lora lub auto.</translation></message>
<message><source>Set model.training to lora.</source><translation>Ustaw model.training na lora.</translation></message>
<message><source>Set swarm.lan to false.</source><translation>Ustaw swarm.lan na false.</translation></message>
<message><source>Set the clock by the network: answers that seem too old or too new are refused by others.</source><translation>Ustaw zegar według sieci: odpowiedzi, które wydają się za stare lub za nowe, inni odrzucają.</translation></message>
<message><source>Set your own watts, a price and a daily limit in Settings.</source><translation>Własne waty, cenę i dzienny limit ustawisz w Ustawieniach.</translation></message>
<message><source>Sets the processors below and the conditions under When to train.</source><translation>Ustawia procesory poniżej i warunki w sekcji „Kiedy trenować”.</translation></message>
<message><source>Settings</source><translation>Ustawienia</translation></message>
<message><source>Settings of the command line were left out: the engine runs already.</source><translation>Ustawienia z wiersza poleceń pominięto: silnik już działa.</translation></message>
<message><source>Settings offers to use your NVIDIA card</source><translation>W Ustawieniach możesz włączyć użycie karty NVIDIA</translation></message>
<message><source>Share</source><translation>Udostępnianie</translation></message>
<message><source>Share my answers</source><translation>Udostępniaj moje odpowiedzi</translation></message>
<message><source>Share of the graphics processor</source><translation>Udział procesora graficznego</translation></message>
<message><source>Share of the processor's time</source><translation>Udział czasu procesora</translation></message>
<message><source>Share of the questions by specialty</source><translation>Udział pytań według specjalności</translation></message>
<message><source>Share your answers from now on? Other models learn from them. Everybody in the swarm can read them, labelled as human, and they cannot be taken back.</source><translation>Udostępniać odtąd Twoje odpowiedzi? Uczą się na nich inne modele. Może je czytać każdy w roju, z oznaczeniem, że są od człowieka, i nie da się ich cofnąć.</translation></message>
<message><source>Shared</source><translation>Udostępnione</translation></message>
<message><source>Shared with the swarm</source><translation>Udostępnione rojowi</translation></message>
<message><source>Sharing</source><translation>Dzieli się</translation></message>
<message><source>Sharing leads, %1 to %2</source><translation>Dzielenie się prowadzi, %1 do %2</translation></message>
<message><source>Sharing needs two. An invite is a link or a QR code, and costs nothing.</source><translation>Do wymiany trzeba dwojga. Zaproszenie to link albo kod QR i nic nie kosztuje.</translation></message>
<message><source>Sharing strategy</source><translation>Strategia wymiany</translation></message>
<message><source>Sharing won, %1 to %2</source><translation>Dzielenie się wygrało, %1 do %2</translation></message>
<message><source>Shorten it, or leave it out.</source><translation>Skróć albo pomiń.</translation></message>
<message><source>Shorten it.</source><translation>Skróć.</translation></message>
<message><source>Shorten the lists in them.</source><translation>Skróć listy, które zawierają.</translation></message>
<message><source>Shorten them, or choose another model.</source><translation>Skróć je albo wybierz inny model.</translation></message>
<message><source>Shorter answers can travel: lower the longest answer in Settings.</source><translation>Krótsze odpowiedzi da się wysłać: skróć w ustawieniach najdłuższą odpowiedź.</translation></message>
<message><source>Shortest path</source><translation>Najkrótsza ścieżka</translation></message>
<message><source>Show all</source><translation>Pokaż wszystko</translation></message>
<message><source>Show answers</source><translation>Pokaż odpowiedzi</translation></message>
<message><source>Show as calendar</source><translation>Pokaż jako kalendarz</translation></message>
<message><source>Show as charts</source><translation>Pokaż jako wykresy</translation></message>
<message><source>Show as table</source><translation>Pokaż jako tabelę</translation></message>
<message><source>Show full answers</source><translation>Pokaż całe odpowiedzi</translation></message>
<message><source>Show it on a projector</source><translation>Pokaż na projektorze</translation></message>
<message><source>Show less</source><translation>Pokaż mniej</translation></message>
<message><source>Show question</source><translation>Pokaż pytanie</translation></message>
<message><source>Show the last ten messages</source><translation>Pokaż ostatnie dziesięć komunikatów</translation></message>
<message><source>Show the whole run</source><translation>Pokaż cały przebieg</translation></message>
<message><source>Show them</source><translation>Pokaż je</translation></message>
<message><source>Shown once Waggle has started.</source><translation>Pojawi się, gdy Waggle się uruchomi.</translation></message>
<message><source>Simple geometry</source><translation>Prosta geometria</translation></message>
<message><source>Simplify the fraction 12/18.</source><translation>Skróć ułamek 12/18.</translation></message>
<message><source>Size not known yet</source><translation>Rozmiar jeszcze nieznany</translation></message>
<message><source>Skip set-up</source><translation>Pomiń konfigurację</translation></message>
<message><source>Sleep</source><translation>Usypianie</translation></message>
<message><source>Small language models</source><translation>Małe modele językowe</translation></message>
<message><source>Small language models learn more in %1, a swarm with easier questions that comes with Waggle.</source><translation>Małe modele językowe nauczą się więcej w %1, roju z łatwiejszymi pytaniami, który jest częścią Waggle.</translation></message>
<message><source>Small models that learn well. Waggle downloads nothing until you say so.</source><translation>Małe modele, które dobrze się uczą. Waggle niczego nie pobiera, dopóki nie zdecydujesz.</translation></message>
<message><source>Small, and meant to be taught a single task.</source><translation>Mały i pomyślany do nauki jednego zadania.</translation></message>
<message><source>SmolLM2-135M on one graphics card</source><translation>SmolLM2-135M na jednej karcie graficznej</translation></message>
<message><source>So it is not used.</source><translation>Dlatego plik nie jest używany.</translation></message>
<message><source>So it learns the form first: an answer that can be read earns a little, even if it is wrong.</source><translation>Dlatego najpierw uczy się formy: odpowiedź, którą da się odczytać, dostaje małą nagrodę, nawet jeśli jest zła.</translation></message>
<message><source>Some network disks have no locks or cannot flush: choose a folder on a local disk.</source><translation>Niektóre dyski sieciowe nie mają blokad albo nie utrwalają zapisu: wybierz folder na dysku lokalnym.</translation></message>
<message><source>Some network disks lack them: choose a folder on a local disk with --home.</source><translation>Niektóre dyski sieciowe ich nie mają: przez --home wybierz folder na dysku lokalnym.</translation></message>
<message><source>Some tries are right. It learns from what sets them apart from the others.</source><translation>Niektóre próby są dobre. Uczy się z tego, co odróżnia je od pozostałych.</translation></message>
<message><source>Something between Hugging Face and this computer changes files. Try again from another network.</source><translation>Coś między Hugging Face a tym komputerem zmienia pliki. Spróbuj ponownie z innej sieci.</translation></message>
<message><source>Something in the window went wrong: %1</source><translation>W oknie coś poszło nie tak: %1</translation></message>
<message><source>Something on the way changes files. Try another network.</source><translation>Coś po drodze zmienia pliki. Spróbuj w innej sieci.</translation></message>
<message><source>Something on the way changes files. Try another network. What was downloaded is kept.</source><translation>Coś po drodze zmienia pliki. Spróbuj w innej sieci. Pobrane dane zostają.</translation></message>
<message><source>Something went wrong.</source><translation>Coś poszło nie tak.</translation></message>
<message><source>Specialties</source><translation>Specjalności</translation></message>
<message><source>Specialty</source><translation>Specjalność</translation></message>
<message><source>Spell backward</source><translation>Literowanie wspak</translation></message>
<message><source>Stage held while it is scrolled down. </source><translation>Scena stoi, dopóki jest przewinięta w dół. </translation></message>
<message><source>Stage held while the pointer is on it. </source><translation>Scena stoi, dopóki jest na niej wskaźnik. </translation></message>
<message><source>Stage held while the whole question is open. </source><translation>Scena stoi, dopóki otwarte jest całe pytanie. </translation></message>
<message><source>Stage held while you are in it. </source><translation>Scena stoi, dopóki w niej jesteś. </translation></message>
<message><source>Standard</source><translation>Standardowe</translation></message>
<message><source>Standard questions: %1</source><translation>Standardowe pytania: %1</translation></message>
<message><source>Standing</source><translation>Reputacja</translation></message>
<message><source>Start</source><translation>Uruchom</translation></message>
<message><source>Start a race</source><translation>Rozpocznij wyścig</translation></message>
<message><source>Start another one with `run`.</source><translation>Uruchom inny przez `run`.</translation></message>
<message><source>Start it, correct its address, or use none.</source><translation>Uruchom go, popraw jego adres albo z niego zrezygnuj.</translation></message>
<message><source>Start one with `waggle engine`.</source><translation>Uruchom go poleceniem `waggle engine`.</translation></message>
<message><source>Start over</source><translation>Zacznij od nowa</translation></message>
<message><source>Start over, or choose another model.</source><translation>Zacznij od nowa albo wybierz inny model.</translation></message>
<message><source>Start the race</source><translation>Rozpocznij wyścig</translation></message>
<message><source>Start when I log in</source><translation>Uruchamiaj, gdy się loguję</translation></message>
<message><source>Starter</source><translation>Starter</translation></message>
<message><source>Starting Waggle.</source><translation>Uruchamianie Waggle.</translation></message>
<message><source>Starting and closing</source><translation>Uruchamianie i zamykanie</translation></message>
<message><source>Starting points</source><translation>Punkty startowe</translation></message>
<message><source>Starting the answer checker</source><translation>Uruchamianie oceny odpowiedzi</translation></message>
<message><source>Starting the answer checker. It gets on slowly, because this computer is busy or its disk is slow</source><translation>Uruchamianie oceny odpowiedzi. Idzie powoli, bo ten komputer jest zajęty albo jego dysk jest wolny</translation></message>
<message><source>Starting up. The link is checked in a moment.</source><translation>Uruchamianie. Link zostanie zaraz sprawdzony.</translation></message>
<message><source>Starts %1 at %2.</source><translation>Start: %1, %2.</translation></message>
<message><source>Starts %1 min after you stop.</source><translation>Start %1 min po tym, jak przestaniesz.</translation></message>
<message><source>Starts after midnight.</source><translation>Start po północy.</translation></message>
<message><source>Starts at %1.</source><translation>Start o %1.</translation></message>
<message><source>Starts below %1 °C.</source><translation>Start poniżej %1 °C.</translation></message>
<message><source>Starts on a network that is not.</source><translation>Start w sieci bez limitu danych.</translation></message>
<message><source>Starts when it does not any more.</source><translation>Start, gdy przestanie.</translation></message>
<message><source>Starts when it is closed.</source><translation>Start po jego zamknięciu.</translation></message>
<message><source>Starts when you plug it in.</source><translation>Start po podłączeniu zasilania.</translation></message>
<message><source>Starts within a minute, if it stays so.</source><translation>Start w ciągu minuty, jeśli tak zostanie.</translation></message>
<message><source>Statements about themselves</source><translation>Zdania o sobie samych</translation></message>
<message><source>Status page and gateway</source><translation>Strona stanu i brama</translation></message>
<message><source>Stay here</source><translation>Zostają tutaj</translation></message>
<message><source>Stay in the menu bar when closed</source><translation>Po zamknięciu zostań na pasku menu</translation></message>
<message><source>Stay in the tray when closed</source><translation>Po zamknięciu zostań w zasobniku</translation></message>
<message><source>Stays here</source><translation>Zostaje tutaj</translation></message>
<message><source>Stays on this computer</source><translation>Zostaje na tym komputerze</translation></message>
<message><source>Step %1 of %2</source><translation>Krok %1 z %2</translation></message>
<message><source>Steps per round</source><translation>Kroki na rundę</translation></message>
<message><source>Stop</source><translation>Zatrzymaj</translation></message>
<message><source>Stop it (an engine with `waggle ctl stop`), or use another --home.</source><translation>Zatrzymaj go (silnik przez `waggle ctl stop`) albo użyj innego --home.</translation></message>
<message><source>Stop it with `waggle stop`, or use another folder.</source><translation>Zatrzymaj go przez `waggle stop` albo użyj innego folderu.</translation></message>
<message><source>Stop taking part</source><translation>Przestań uczestniczyć</translation></message>
<message><source>Stopped</source><translation>Zatrzymano</translation></message>
<message numerus="yes"><source>Stopped after %n rounds; a verdict needs a whole race</source><translation><numerusform>Zatrzymano po %n rundzie; do werdyktu potrzebny jest cały wyścig</numerusform><numerusform>Zatrzymano po %n rundach; do werdyktu potrzebny jest cały wyścig</numerusform><numerusform>Zatrzymano po %n rundach; do werdyktu potrzebny jest cały wyścig</numerusform></translation></message>
<message><source>Stopped at: %1</source><translation>Zatrzymano na: %1</translation></message>
<message><source>Stopping training</source><translation>Zatrzymywanie treningu</translation></message>
<message><source>Store one that may read it with `waggle token`.</source><translation>Zapisz token, który może go czytać, poleceniem `waggle token`.</translation></message>
<message><source>Stored in this computer's keychain, sent only to Hugging Face, and never shown again.</source><translation>Jest w pęku kluczy tego komputera, trafia tylko do Hugging Face i nie jest już nigdy pokazywany.</translation></message>
<message><source>Strong and fully open; best with a graphics card.</source><translation>Mocny i w pełni otwarty; najlepiej z kartą graficzną.</translation></message>
<message><source>Successes only</source><translation>Tylko udane</translation></message>
<message><source>Such as games, films or presentations.</source><translation>Na przykład gry, filmy lub prezentacje.</translation></message>
<message><source>Sudoku</source><translation>Sudoku</translation></message>
<message><source>Sums</source><translation>Sumy</translation></message>
<message><source>Sunday</source><translation>Niedziela</translation></message>
<message><source>Survo</source><translation>Survo</translation></message>
<message><source>Swarm</source><translation>Rój</translation></message>
<message><source>Swarms</source><translation>Roje</translation></message>
<message><source>Swarms and peers</source><translation>Roje i peery</translation></message>
<message><source>Swarms that you know have ended.</source><translation>Znane Ci roje się zakończyły.</translation></message>
<message><source>Swarms you know, the keys of private ones, and what you think of peers.</source><translation>Znane Ci roje, klucze prywatnych i Twoje zdanie o peerach.</translation></message>
<message><source>Switch to %1</source><translation>Przejdź do %1</translation></message>
<message><source>Switching from %1 takes a few seconds. Your model keeps what it learned and goes on with round %2.</source><translation>Przejście z %1 trwa kilka sekund. Twój model zachowa to, czego się nauczył, i zacznie od rundy %2.</translation></message>
<message><source>Syllogism</source><translation>Sylogizm</translation></message>
<message><source>System default</source><translation>Jak w systemie</translation></message>
<message><source>System default (off)</source><translation>Domyślnie jak w systemie (wył.)</translation></message>
<message><source>Table</source><translation>Tabela</translation></message>
<message><source>Table (*.csv)</source><translation>Tabela (*.csv)</translation></message>
<message><source>Take a screenshot of the code.</source><translation>Zrób zrzut ekranu z kodem.</translation></message>
<message><source>Take another copy of the backup, if there is one.</source><translation>Użyj innej kopii zapasowej, jeśli jest.</translation></message>
<message><source>Take part</source><translation>Weź udział</translation></message>
<message><source>Take the address of another seed.</source><translation>Użyj adresu innego węzła startowego.</translation></message>
<message><source>Take the picture again: the whole code, straight from the front, sharp, without reflections.</source><translation>Zrób zdjęcie jeszcze raz: cały kod, prosto z przodu, ostro i bez odbić.</translation></message>
<message numerus="yes"><source>Take your %n rounds along to the new version, or start over from it.</source><translation><numerusform>Przenieś swoją %n rundę do nowej wersji albo zacznij od niej od nowa.</numerusform><numerusform>Przenieś swoje %n rundy do nowej wersji albo zacznij od niej od nowa.</numerusform><numerusform>Przenieś swoje %n rund do nowej wersji albo zacznij od niej od nowa.</numerusform></translation></message>
<message><source>Takes under a minute</source><translation>Zajmuje mniej niż minutę</translation></message>
<message><source>Tall Juniper</source><translation>Tall Juniper</translation></message>
<message><source>Temperature</source><translation>Temperatura</translation></message>
<message><source>Test score</source><translation>Test</translation></message>
<message><source>Testing</source><translation>Test</translation></message>
<message><source>Testing. This takes about half a minute.</source><translation>Test trwa. To potrwa około pół minuty.</translation></message>
<message><source>Tests</source><translation>Testy</translation></message>
<message><source>Text size</source><translation>Rozmiar tekstu</translation></message>
<message><source>That is not a Hugging Face token.</source><translation>To nie jest token Hugging Face.</translation></message>
<message><source>The %1 of the model in %2 cannot be read: %3.</source><translation>Nie można odczytać części modelu w %2 (%1): %3.</translation></message>
<message><source>The %1 of the model in %2 ends the program that reads it: %3.</source><translation>Część modelu w %2 (%1) przerywa program, który ją czyta: %3.</translation></message>
<message><source>The %1 of the model in %2 makes its reader talk nonsense.</source><translation>Przez część modelu w %2 (%1) program, który ją czyta, zwraca bzdury.</translation></message>
<message><source>The %1 of the model in %2 takes too long to read.</source><translation>Odczyt części modelu w %2 (%1) trwa zbyt długo.</translation></message>
<message><source>The %1 of the model in %2 takes too much memory to read.</source><translation>Odczyt części modelu w %2 (%1) wymaga zbyt dużo pamięci.</translation></message>
<message><source>The QR code in that picture is no invite.</source><translation>Kod QR na tym obrazie nie jest zaproszeniem.</translation></message>
<message><source>The address of the list of versions is not https.</source><translation>Adres listy wersji nie zaczyna się od https.</translation></message>
<message><source>The answer cannot be stored: %1.</source><translation>Nie można zapisać odpowiedzi: %1.</translation></message>
<message><source>The answers of all saved states are no numbers.</source><translation>Odpowiedzi wszystkich zapisanych stanów nie są liczbami.</translation></message>
<message><source>The backup that was written does not open.</source><translation>Zapisana kopia zapasowa się nie otwiera.</translation></message>
<message><source>The certificates of this computer cannot be read: %1.</source><translation>Nie można odczytać certyfikatów tego komputera: %1.</translation></message>
<message><source>The charter %1 cannot be opened.</source><translation>Nie można otworzyć karty roju %1.</translation></message>
<message><source>The charter %1 cannot be opened: %2.</source><translation>Nie można otworzyć karty roju %1: %2.</translation></message>
<message><source>The charter %1 is no text in UTF-8.</source><translation>Karta roju %1 nie jest tekstem w UTF-8.</translation></message>
<message><source>The charter cannot be kept: %1.</source><translation>Nie można zachować karty roju: %1.</translation></message>
<message><source>The charter of %1 has no specialty %2.</source><translation>Karta roju %1 nie zawiera specjalności %2.</translation></message>
<message><source>The charts appear here once training runs.</source><translation>Wykresy pojawią się tutaj, gdy trening ruszy.</translation></message>
<message><source>The chat template in %1 cannot be read now: %2.</source><translation>Nie można teraz odczytać szablonu czatu w %1: %2.</translation></message>
<message><source>The chat template in %1 cannot be used: %2.</source><translation>Nie można użyć szablonu czatu w %1: %2.</translation></message>
<message><source>The chat template of this model changed since it was trained last.</source><translation>Szablon czatu tego modelu zmienił się od ostatniego treningu.</translation></message>
<message><source>The check failed:</source><translation>Sprawdzenie się nie powiodło:</translation></message>
<message><source>The checkpoints before are kept. Make room on the disk.</source><translation>Wcześniejsze punkty kontrolne są zachowane. Zwolnij miejsce na dysku.</translation></message>
<message><source>The choice cannot be kept: %1.</source><translation>Nie można zapisać wyboru: %1.</translation></message>
<message><source>The chosen model is the one that was trained here.</source><translation>Wybrany model to ten, który był tu trenowany.</translation></message>
<message><source>The chosen peer</source><translation>Wybrany peer</translation></message>
<message><source>The clock on %1 is %2 ahead of this computer's.</source><translation>Zegar na %1 spieszy się o %2 względem tego komputera.</translation></message>
<message><source>The clock on %1 is %2 behind this computer's.</source><translation>Zegar na %1 spóźnia się o %2 względem tego komputera.</translation></message>
<message><source>The command</source><translation>Polecenie</translation></message>
<message><source>The computer runs on battery.</source><translation>Komputer działa na baterii.</translation></message>
<message><source>The connection is not safe: %1.</source><translation>Połączenie nie jest bezpieczne: %1.</translation></message>
<message><source>The connection to %1 broke.</source><translation>Połączenie z %1 zostało zerwane.</translation></message>
<message><source>The converted %1 needs %2 MB, and the disk has %3 MB free.</source><translation>Po konwersji %1 wymaga %2 MB, a na dysku jest wolne %3 MB.</translation></message>
<message><source>The converted tokenizer cannot be written to %1: %2.</source><translation>Nie można zapisać przekonwertowanego tokenizera w %1: %2.</translation></message>
<message><source>The damaged file is kept as %1.</source><translation>Uszkodzony plik został zachowany jako %1.</translation></message>
<message><source>The default is 4 and 4.</source><translation>Domyślnie 4 i 4.</translation></message>
<message><source>The disk did not take a checkpoint.</source><translation>Dysk nie przyjął punktu kontrolnego.</translation></message>
<message><source>The disk does not take the record of events.</source><translation>Dysk nie przyjmuje zapisu zdarzeń.</translation></message>
<message><source>The disk of %1 has no locks, so nothing keeps two engines apart.</source><translation>Dysk z %1 nie obsługuje blokad, więc nic nie rozdziela dwóch silników.</translation></message>
<message><source>The disk refused the weights of now: %1.</source><translation>Dysk nie przyjął bieżących wag: %1.</translation></message>
<message><source>The download continues where it stopped if it is interrupted.</source><translation>Po przerwaniu pobieranie zostanie wznowione od tego samego miejsca.</translation></message>
<message><source>The download resumes if interrupted.</source><translation>Po przerwaniu pobieranie rusza dalej.</translation></message>
<message><source>The engine cannot listen in %1: %2.</source><translation>Silnik nie może nasłuchiwać w %1: %2.</translation></message>
<message><source>The engine could not do that: %1.</source><translation>Silnik nie mógł tego zrobić: %1.</translation></message>
<message><source>The engine does not answer.</source><translation>Silnik nie odpowiada.</translation></message>
<message><source>The engine ended after %1 rounds.</source><translation>Silnik zakończył pracę, rundy: %1.</translation></message>
<message><source>The engine ended before it answered.</source><translation>Silnik zakończył pracę, zanim odpowiedział.</translation></message>
<message><source>The engine ended while it opened the model in %1. It opens this model only if you choose it once more, on the page Models or with `waggle model choose`.</source><translation>Silnik zakończył pracę podczas otwierania modelu w %1. Otworzy ten model tylko wtedy, gdy wybierzesz go jeszcze raz na stronie Modele lub przez `waggle model choose`.</translation></message>
<message><source>The engine has ended.</source><translation>Silnik zakończył pracę.</translation></message>
<message><source>The engine is ending.</source><translation>Silnik kończy pracę.</translation></message>
<message><source>The engine is leaving.</source><translation>Silnik właśnie wychodzi.</translation></message>
<message><source>The engine met an unexpected error: %1.</source><translation>Silnik napotkał nieoczekiwany błąd: %1.</translation></message>
<message><source>The engine of %1 cannot be asked: %2.</source><translation>Nie można odpytać silnika %1: %2.</translation></message>
<message><source>The engine repairs it when it starts.</source><translation>Silnik naprawi to przy uruchomieniu.</translation></message>
<message><source>The engine said something endless.</source><translation>Silnik wysłał coś, co się nie kończy.</translation></message>
<message><source>The engine said something unknown: %1.</source><translation>Silnik wysłał coś nieznanego: %1.</translation></message>
<message><source>The engine saves one when it stops.</source><translation>Silnik zapisuje stan, gdy się zatrzymuje.</translation></message>
<message><source>The engine speaks protocol %1, this window %2.</source><translation>Silnik używa protokołu %1, a to okno %2.</translation></message>
<message><source>The engine that ran without a window has ended.</source><translation>Silnik działający bez okna zakończył pracę.</translation></message>
<message><source>The engine writes the history: `waggle engine` starts it.</source><translation>Historię zapisuje silnik: uruchomi go `waggle engine`.</translation></message>
<message><source>The figures of every round, which charts are drawn from.</source><translation>Dane z każdej rundy, z których powstają wykresy.</translation></message>
<message><source>The figures of rounds cannot be written any more: %1.</source><translation>Nie można już zapisywać danych z rund: %1.</translation></message>
<message><source>The file</source><translation>Plik</translation></message>
<message><source>The file cannot be read: %1.</source><translation>Nie można odczytać pliku: %1.</translation></message>
<message><source>The file is opened and closed again; nothing is changed.</source><translation>Plik zostanie otwarty i zamknięty; nic się nie zmieni.</translation></message>
<message><source>The file of %1 %2.</source><translation>Plik od %1: %2.</translation></message>
<message><source>The file of the backup</source><translation>Plik kopii zapasowej</translation></message>
<message><source>The file with the questions is refused: %1.</source><translation>Plik z pytaniami został odrzucony: %1.</translation></message>
<message><source>The files %1 and %2 with the questions are refused: both have the question %3.</source><translation>Pliki z pytaniami %1 i %2 zostały odrzucone: w obu jest pytanie %3.</translation></message>
<message><source>The first climb takes a while</source><translation>Początkowy wzrost wymaga czasu</translation></message>
<message><source>The first right answer in each specialty appears here, with the peer it was learned from.</source><translation>Tutaj pojawi się pierwsza poprawna odpowiedź w każdej specjalności wraz z peerem, od którego pochodzi.</translation></message>
<message><source>The folder %1 cannot be used: %2.</source><translation>Nie można użyć folderu %1: %2.</translation></message>
<message><source>The folder %1 cannot be written: %2.</source><translation>Nie można zapisywać w folderze %1: %2.</translation></message>
<message><source>The folder %1 is not yours alone.</source><translation>Folder %1 nie należy tylko do Ciebie.</translation></message>
<message><source>The folder of an export is named by its whole path.</source><translation>Podaj pełną ścieżkę folderu eksportu.</translation></message>
<message><source>The gateway %1 shows %2 of %3 members that another one shows.</source><translation>Brama %1 pokazuje %2 z %3 członków, których pokazuje inna.</translation></message>
<message><source>The header of %1 of %2 is too large.</source><translation>Nagłówek %1 z %2 jest za duży.</translation></message>
<message><source>The heads of the model in %1 cannot be shared out.</source><translation>Nie można rozdzielić głowic modelu w %1.</translation></message>
<message><source>The history %1 cannot be read: %2.</source><translation>Nie da się odczytać historii %1: %2.</translation></message>
<message><source>The history cannot be opened: %1.</source><translation>Nie można otworzyć historii: %1.</translation></message>
<message><source>The history cannot be written: %1.</source><translation>Nie można zapisać historii: %1.</translation></message>
<message><source>The history was damaged; %1 rounds of it were rebuilt from the record of events.</source><translation>Historia była uszkodzona; z zapisu zdarzeń odtworzono rundy: %1.</translation></message>
<message><source>The history was older than the model. Restored rounds: %1.</source><translation>Historia była starsza niż model. Przywrócone rundy: %1.</translation></message>
<message><source>The hours are those of the other computer.</source><translation>Godziny są podane według drugiego komputera.</translation></message>
<message><source>The identity file %1 cannot be opened: %2.</source><translation>Nie można otworzyć pliku tożsamości %1: %2.</translation></message>
<message><source>The identity file %1 cannot be written: %2.</source><translation>Nie można zapisać pliku tożsamości %1: %2.</translation></message>
<message><source>The identity file %1 is damaged.</source><translation>Plik tożsamości %1 jest uszkodzony.</translation></message>
<message><source>The identity file %1 is damaged: its two halves do not belong together.</source><translation>Plik tożsamości %1 jest uszkodzony: jego dwie połowy do siebie nie pasują.</translation></message>
<message><source>The installed app comes without it. Run Waggle from its source to use it.</source><translation>Zainstalowana aplikacja go nie zawiera. Aby z niego korzystać, uruchom Waggle ze źródeł.</translation></message>
<message><source>The invite link</source><translation>Link z zaproszeniem</translation></message>
<message><source>The invite link as a QR code; the same link stands beside it as text</source><translation>Link z zaproszeniem jako kod QR; ten sam link jest obok jako tekst</translation></message>
<message><source>The journal cannot be mended: %1.</source><translation>Nie można naprawić dziennika: %1.</translation></message>
<message><source>The journal has every round since the last one. Make room on the disk.</source><translation>Dziennik zawiera każdą rundę od ostatniego. Zwolnij miejsce na dysku.</translation></message>
<message><source>The judging process cannot be started: %1.</source><translation>Nie można uruchomić procesu oceniania: %1.</translation></message>
<message><source>The judging process was started again: %1.</source><translation>Proces oceniania został uruchomiony ponownie: %1.</translation></message>
<message><source>The key %1 of a private swarm cannot be opened: %2.</source><translation>Nie można otworzyć klucza %1 prywatnego roju: %2.</translation></message>
<message><source>The key file cannot be replaced: %1.</source><translation>Nie można zastąpić pliku klucza: %1.</translation></message>
<message><source>The key that is here does not open %1.</source><translation>Obecny tu klucz nie otwiera %1.</translation></message>
<message><source>The key that makes you who you are is still here.</source><translation>Klucz, który potwierdza Twoją tożsamość, nadal tu jest.</translation></message>
<message><source>The keychain of this computer cannot be used (%1).</source><translation>Nie można użyć pęku kluczy tego komputera (%1).</translation></message>
<message><source>The last one of the user is the question.</source><translation>Ostatnia wiadomość użytkownika to pytanie.</translation></message>
<message><source>The last ten messages that left this computer</source><translation>Ostatnie dziesięć wiadomości, które opuściły ten komputer</translation></message>
<message><source>The last year</source><translation>Ostatni rok</translation></message>
<message><source>The layers of the model in %1 cannot be normalised.</source><translation>Nie można znormalizować warstw modelu w %1.</translation></message>
<message><source>The limit of %1 kB/s makes answers of peers and your own wait.</source><translation>Przez limit %1 kB/s odpowiedzi peerów i Twoje muszą czekać.</translation></message>
<message><source>The link holds the key of this private swarm: whoever has it can join, and it cannot be taken back. To shut somebody out, create a new swarm.</source><translation>Link zawiera klucz tego prywatnego roju: kto go ma, może dołączyć, i nie da się tego cofnąć. Aby kogoś wykluczyć, utwórz nowy rój.</translation></message>
<message><source>The link is ready: copy it, or save it as a file.</source><translation>Link jest gotowy: skopiuj go albo zapisz jako plik.</translation></message>
<message><source>The link works as long as this computer, or another one listed in it, is on.</source><translation>Link działa, dopóki ten komputer lub inny w nim wymieniony jest włączony.</translation></message>
<message><source>The list of audited specialties cannot be read.</source><translation>Nie można odczytać listy sprawdzonych specjalności.</translation></message>
<message><source>The list of specialties cannot be read.</source><translation>Nie można odczytać listy specjalności.</translation></message>
<message><source>The list of swarms %1 cannot be read: %2.</source><translation>Nie można odczytać listy rojów %1: %2.</translation></message>
<message><source>The list of swarms %1 cannot be set aside.</source><translation>Nie można odłożyć na bok listy rojów %1.</translation></message>
<message><source>The list of swarms %1 is damaged.</source><translation>Lista rojów %1 jest uszkodzona.</translation></message>
<message><source>The list of swarms cannot be written: %1.</source><translation>Nie można zapisać listy rojów: %1.</translation></message>
<message><source>The list of versions cannot be reached.</source><translation>Lista wersji jest niedostępna.</translation></message>
<message><source>The list of versions cannot be read.</source><translation>Nie można odczytać listy wersji.</translation></message>
<message><source>The list of versions is not signed by Waggle's makers; it was ignored.</source><translation>Lista wersji nie jest podpisana przez twórców Waggle, więc została pominięta.</translation></message>
<message><source>The list of versions is too long to be one.</source><translation>Lista wersji jest zbyt długa, by była prawdziwa.</translation></message>
<message><source>The list of your swarms was damaged. Waggle found your swarms in other files.</source><translation>Lista twoich rojów była uszkodzona. Waggle odnalazł roje w innych plikach.</translation></message>
<message><source>The list of your swarms was gone. Waggle found your swarms in other files.</source><translation>Lista twoich rojów zniknęła. Waggle odnalazł roje w innych plikach.</translation></message>
<message><source>The local network cannot be searched: %1.</source><translation>Nie można przeszukać sieci lokalnej: %1.</translation></message>
<message><source>The log has the details.</source><translation>Szczegóły są w logu.</translation></message>
<message><source>The longest question has %1 characters, the longest answer %2.</source><translation>Liczba znaków: najdłuższe pytanie %1, najdłuższa odpowiedź %2.</translation></message>
<message><source>The model after %1 rounds is not kept any more.</source><translation>Model z rundy %1 nie jest już przechowywany.</translation></message>
<message><source>The model cannot be computed: %1</source><translation>Nie można obliczyć modelu: %1</translation></message>
<message><source>The model cannot be computed: %1.</source><translation>Nie można obliczyć modelu: %1.</translation></message>
<message><source>The model could not be downloaded, for a reason that Waggle did not expect.</source><translation>Nie udało się pobrać modelu z powodu, którego Waggle nie przewidział.</translation></message>
<message><source>The model does not write from left to right.</source><translation>Model nie pisze od lewej do prawej.</translation></message>
<message><source>The model has words that are no numbers.</source><translation>Model ma słowa, które nie są liczbami.</translation></message>
<message><source>The model in %1 cannot be checked now: %2.</source><translation>Nie można teraz sprawdzić modelu w %1: %2.</translation></message>
<message><source>The model in %1 cannot be opened: %2.</source><translation>Nie można otworzyć modelu w %1: %2.</translation></message>
<message><source>The model in %1 cannot be read: %2 is not there.</source><translation>Nie można odczytać modelu w %1: brakuje %2.</translation></message>
<message><source>The model in %1 cannot be read: %2.</source><translation>Nie można odczytać modelu w %1: %2.</translation></message>
<message><source>The model in %1 cannot be read: its config.json says that %2 is %3.</source><translation>Nie można odczytać modelu w %1: według config.json %2 to %3.</translation></message>
<message><source>The model in %1 cannot be read: its head is not its embedding, as it says.</source><translation>Nie można odczytać modelu w %1: jego głowica nie jest osadzeniem, choć tak podaje.</translation></message>
<message><source>The model in %1 names no stop token.</source><translation>Model w %1 nie podaje tokenu końca.</translation></message>
<message><source>The model in %1 needs code of its own, which Waggle never runs.</source><translation>Model w %1 wymaga własnego kodu, a takiego Waggle nigdy nie uruchamia.</translation></message>
<message><source>The model is downloaded once, and kept. Training begins when it is here.</source><translation>Model jest pobierany raz i zostaje tutaj. Trening zacznie się, gdy będzie na miejscu.</translation></message>
<message><source>The model is still in the middle of a step.</source><translation>Model jest jeszcze w trakcie kroku.</translation></message>
<message><source>The model is trained another way than before: its optimiser begins anew.</source><translation>Model jest trenowany inaczej niż wcześniej: jego optymalizator zaczyna od nowa.</translation></message>
<message><source>The model itself, unless you export it</source><translation>Sam model, chyba że go wyeksportujesz</translation></message>
<message numerus="yes"><source>The model knew it %n times, but did not mark it as its answer. Your model learns that first.</source><translation><numerusform>Model wiedział to raz, ale nie oznaczył tego jako odpowiedzi. Tego twój model uczy się najpierw.</numerusform><numerusform>Model wiedział to %n razy, ale nie oznaczył tego jako odpowiedzi. Tego twój model uczy się najpierw.</numerusform><numerusform>Model wiedział to %n razy, ale nie oznaczył tego jako odpowiedzi. Tego twój model uczy się najpierw.</numerusform></translation></message>
<message><source>The model ran out of memory.</source><translation>Modelowi zabrakło pamięci.</translation></message>
<message><source>The model's answers are no numbers.</source><translation>Odpowiedzi modelu nie są liczbami.</translation></message>
<message><source>The model's quantisation cannot be read: %1.</source><translation>Nie można odczytać kwantyzacji modelu: %1.</translation></message>
<message><source>The most capable one here; it wants a large graphics card.</source><translation>Najzdolniejszy z dostępnych; potrzebuje dużej karty graficznej.</translation></message>
<message><source>The most it may take.</source><translation>Tyle najwyżej może zająć.</translation></message>
<message><source>The network address that Waggle listens on. 0.0.0.0 means every network of this computer.</source><translation>Adres sieciowy, na którym Waggle nasłuchuje. 0.0.0.0 oznacza każdą sieć tego komputera.</translation></message>
<message><source>The network answers in place of the server.</source><translation>Zamiast serwera odpowiada sieć.</translation></message>
<message><source>The network is metered.</source><translation>Sieć jest taryfowa.</translation></message>
<message><source>The network is not metered any more.</source><translation>Sieć nie jest już taryfowa.</translation></message>
<message><source>The network is not metered.</source><translation>Sieć nie jest taryfowa.</translation></message>
<message><source>The network process does not keep running: its next start waits for up to a minute. Training continues alone.</source><translation>Proces sieciowy ciągle się kończy: jego następne uruchomienie poczeka do minuty. Trening trwa w pojedynkę.</translation></message>
<message><source>The network process does not start.</source><translation>Proces sieciowy się nie uruchamia.</translation></message>
<message><source>The network process ended while it started.</source><translation>Proces sieciowy zakończył się podczas uruchamiania.</translation></message>
<message><source>The newest saved state answers.</source><translation>Odpowiada najnowszy zapisany stan.</translation></message>
<message><source>The next right answer, yours or a peer's, appears here.</source><translation>Tutaj pojawi się następna poprawna odpowiedź, Twoja albo peera.</translation></message>
<message><source>The old one is kept beside it as %1.</source><translation>Poprzednia wersja pozostała obok jako %1.</translation></message>
<message><source>The old training cannot continue with these files.</source><translation>Z tymi plikami nie można kontynuować poprzedniego treningu.</translation></message>
<message><source>The one before it was used.</source><translation>Użyto wcześniejszego.</translation></message>
<message><source>The other computer does not answer: nothing was changed.</source><translation>Drugi komputer nie odpowiada: nic nie zmieniono.</translation></message>
<message><source>The other questions of this round</source><translation>Pozostałe pytania tej rundy</translation></message>
<message><source>The package index answered %1 when asked for %2.</source><translation>Indeks pakietów odpowiedział %1 na zapytanie o %2.</translation></message>
<message><source>The package index cannot be reached.</source><translation>Indeks pakietów jest niedostępny.</translation></message>
<message><source>The package index sends %1 in a form that cannot be read, or in circles.</source><translation>Indeks pakietów wysyła %1 w nieczytelnej postaci albo w kółko.</translation></message>
<message><source>The page Swarms says why.</source><translation>Powód podaje strona Roje.</translation></message>
<message><source>The picture cannot be read.</source><translation>Nie można odczytać obrazu.</translation></message>
<message><source>The picture is damaged.</source><translation>Obraz jest uszkodzony.</translation></message>
<message><source>The picture is too large.</source><translation>Obraz jest za duży.</translation></message>
<message><source>The place of a backup is named by its whole path.</source><translation>Podaj pełną ścieżkę miejsca kopii zapasowej.</translation></message>
<message><source>The positions of the model in %1 cannot be turned.</source><translation>Nie można obrócić pozycji modelu w %1.</translation></message>
<message><source>The preview does not join yet. It shows:</source><translation>Podgląd to jeszcze nie dołączenie. Pokazuje:</translation></message>
<message><source>The processor has just cooled down.</source><translation>Procesor właśnie ostygł.</translation></message>
<message><source>The processor is cool enough.</source><translation>Procesor jest wystarczająco chłodny.</translation></message>
<message><source>The processor is too warm: %1 °C.</source><translation>Procesor jest za ciepły: %1 °C.</translation></message>
<message><source>The proxy %1 does not answer.</source><translation>Serwer proxy %1 nie odpowiada.</translation></message>
<message><source>The proxy %1 refused the connection: %2.</source><translation>Serwer proxy %1 odrzucił połączenie: %2.</translation></message>
<message><source>The puzzles load in a sandbox. On a busy computer that can take a minute or two.</source><translation>Zagadki ładują się w piaskownicy. Na obciążonym komputerze może to zająć minutę lub dwie.</translation></message>
<message><source>The question alone</source><translation>Samo pytanie</translation></message>
<message><source>The questions and answers are too many: %1 with %2 bytes.</source><translation>Za dużo pytań i odpowiedzi: %1 (bajty: %2).</translation></message>
<message><source>The questions cannot be stored: %1.</source><translation>Nie można zapisać pytań: %1.</translation></message>
<message><source>The questions change here</source><translation>Tutaj zmieniają się pytania</translation></message>
<message><source>The questions of %1 are not on this computer yet.</source><translation>Pytań z %1 nie ma jeszcze na tym komputerze.</translation></message>
<message><source>The questions of %1 are not on this computer, and it trains alone.</source><translation>Pytań z %1 nie ma na tym komputerze, a trenuje on w pojedynkę.</translation></message>
<message><source>The questions of this swarm are not complete.</source><translation>Pytania tego roju nie są kompletne.</translation></message>
<message><source>The questions take %1 bytes when compressed.</source><translation>Rozmiar pytań po kompresji w bajtach: %1.</translation></message>
<message><source>The race has begun</source><translation>Wyścig ruszył</translation></message>
<message><source>The race said something unknown: %1.</source><translation>Wyścig wysłał coś nieznanego: %1.</translation></message>
<message><source>The race stopped by itself</source><translation>Wyścig przerwał się sam</translation></message>
<message><source>The report</source><translation>Raport</translation></message>
<message><source>The rounds before are kept.</source><translation>Wcześniejsze rundy są zachowane.</translation></message>
<message><source>The rounds so far are being asked for.</source><translation>Trwa pobieranie dotychczasowych rund.</translation></message>
<message><source>The rounds that it follows are lost.</source><translation>Rundy, po których następuje, przepadły.</translation></message>
<message><source>The same model alone solved %1 of 100 after as many rounds, in the mean of %2 measured runs.</source><translation>Ten sam model w pojedynkę po tylu samo rundach rozwiązał średnio %1 na 100 (zmierzone przebiegi: %2).</translation></message>
<message><source>The same passphrase again</source><translation>Powtórz hasło</translation></message>
<message><source>The saved state belongs to another model.</source><translation>Zapisany stan należy do innego modelu.</translation></message>
<message><source>The saved state in %1 belongs to another model than the one in %2.</source><translation>Zapisany stan w %1 należy do innego modelu niż ten w %2.</translation></message>
<message><source>The saved state in %1 belongs to another model.</source><translation>Zapisany stan w %1 należy do innego modelu.</translation></message>
<message><source>The saved state in %1 was trained as %2, not as %3.</source><translation>Zapisany stan w %1 był trenowany jako %2, a nie jako %3.</translation></message>
<message><source>The saved state in %1 was trained by %2, which names its weights in another way than %3.</source><translation>Zapisany stan w %1 trenował %2, który nazywa wagi inaczej niż %3.</translation></message>
<message><source>The saved state in %1 was written by a newer Waggle.</source><translation>Zapisany stan w %1 pochodzi z nowszej wersji Waggle.</translation></message>
<message><source>The scores of the model in %1 cannot be scaled.</source><translation>Nie można przeskalować wartości uwagi modelu w %1.</translation></message>
<message><source>The seed %1 has this node's own identity, so it cannot be called.</source><translation>Węzeł startowy %1 ma tożsamość tego węzła, więc nie można się z nim połączyć.</translation></message>
<message><source>The seed has no effect beside peers, as what they send cannot be repeated.</source><translation>Ziarno losowe nie działa przy peerach, bo tego, co wysyłają, nie da się powtórzyć.</translation></message>
<message><source>The setting %1 cannot be used, so Waggle uses the default.</source><translation>Nie można użyć ustawienia %1, więc Waggle przyjmuje wartość domyślną.</translation></message>
<message><source>The settings %1 cannot be written: %2.</source><translation>Nie można zapisać ustawień %1: %2.</translation></message>
<message><source>The settings file %1 cannot be read: %2.</source><translation>Nie można odczytać pliku ustawień %1: %2.</translation></message>
<message><source>The settings file %1 cannot be read: it is not in UTF-8.</source><translation>Nie można odczytać pliku ustawień %1: nie jest w UTF-8.</translation></message>
<message><source>The settings file %1 cannot be set aside: %2.</source><translation>Nie można odłożyć na bok pliku ustawień %1: %2.</translation></message>
<message><source>The settings file %1 is empty, so what you chose is lost.</source><translation>Plik ustawień %1 jest pusty, więc Twoje wybory przepadły.</translation></message>
<message><source>The settings file %1 is too long.</source><translation>Plik ustawień %1 jest za długi.</translation></message>
<message><source>The settings file cannot be read.</source><translation>Nie można odczytać pliku ustawień.</translation></message>
<message><source>The settings file cannot be used: what stands here is not what it holds. Mend it, or set it aside on Home.</source><translation>Nie można użyć pliku ustawień: zawiera co innego, niż tu widać. Popraw go albo odłóż na bok na stronie Start.</translation></message>
<message><source>The smallest one: it learns on almost any computer.</source><translation>Najmniejszy: uczy się na prawie każdym komputerze.</translation></message>
<message><source>The starter</source><translation>Starter</translation></message>
<message><source>The starter knows many answers but hardly ever writes them in the answer tag. It learns that first.</source><translation>Starter zna wiele odpowiedzi, ale prawie nigdy nie wpisuje ich w znacznik odpowiedzi. Najpierw uczy się tego.</translation></message>
<message><source>The starter that comes with Waggle</source><translation>Starter dołączony do Waggle</translation></message>
<message><source>The stop tokens of this model changed since it was trained last.</source><translation>Tokeny końca tego modelu zmieniły się od ostatniego treningu.</translation></message>
<message><source>The swarm is here again.</source><translation>Rój znów jest dostępny.</translation></message>
<message><source>The swarm is not joined yet.</source><translation>Nie należysz jeszcze do tego roju.</translation></message>
<message><source>The swarm needs a name.</source><translation>Rój potrzebuje nazwy.</translation></message>
<message><source>The swarm that you chose</source><translation>Wybrany rój</translation></message>
<message><source>The swarm's charter</source><translation>Karta roju</translation></message>
<message><source>The swarm's questions</source><translation>Pytania roju</translation></message>
<message><source>The swarms you know appear here.</source><translation>Tutaj pojawią się znane Ci roje.</translation></message>
<message><source>The test failed. Details are below.</source><translation>Test się nie powiódł. Szczegóły są poniżej.</translation></message>
<message><source>The tokenizer in %1 cannot be converted now: %2.</source><translation>Nie można teraz przekonwertować tokenizera w %1: %2.</translation></message>
<message><source>The tokenizer in %1 cannot be converted: %2.</source><translation>Nie można przekonwertować tokenizera w %1: %2.</translation></message>
<message><source>The tokenizer in %1 cannot be read: %2.</source><translation>Nie można odczytać tokenizera w %1: %2.</translation></message>
<message><source>The tokenizer in %1 has a token of %2 characters.</source><translation>Tokenizer w %1 ma bardzo długi token (znaki: %2).</translation></message>
<message><source>The tokenizer in %1 has no tokens for plain text.</source><translation>Tokenizer w %1 nie ma tokenów dla zwykłego tekstu.</translation></message>
<message><source>The tokenizer in %1 has to be converted, which this version of Waggle cannot do.</source><translation>Tokenizer w %1 wymaga konwersji, której ta wersja Waggle nie potrafi.</translation></message>
<message><source>The tokenizer in %1 may make a text more than %2 times as long.</source><translation>Tokenizer w %1 może wydłużyć tekst ponad %2-krotnie.</translation></message>
<message><source>The tolerance is not a number from 0 to a billion.</source><translation>Tolerancja nie jest liczbą od 0 do miliarda.</translation></message>
<message><source>The two are not the same yet.</source><translation>Hasła jeszcze się różnią.</translation></message>
<message><source>The upload failed: %1.</source><translation>Wysyłanie się nie udało: %1.</translation></message>
<message><source>The web port %1 of %2 cannot be listened on: %3.</source><translation>Nie można otworzyć portu WWW %1 adresu %2: %3.</translation></message>
<message><source>The weights of the model in %1 are named otherwise: %2, not %3.</source><translation>Wagi modelu w %1 nazywają się inaczej: %2, a nie %3.</translation></message>
<message><source>The weights of the model in %1 are not those that its config.json says.</source><translation>Wagi modelu w %1 są inne, niż podaje jego config.json.</translation></message>
<message><source>The weights of the model in %1 are only there as pickles, which can run any code where they are read.</source><translation>Wagi modelu w %1 są tylko w plikach pickle, które przy odczycie mogą uruchomić dowolny kod.</translation></message>
<message><source>The words of the model in %1 do not fit it: it has %2 tokens.</source><translation>Słowa modelu w %1 do niego nie pasują (liczba jego tokenów: %2).</translation></message>
<message><source>Their answer keys could not be checked independently; their scorers were tested with altered answers.</source><translation>Ich rozwiązań nie dało się niezależnie sprawdzić; ich ocenianie przetestowano na zmienionych odpowiedziach.</translation></message>
<message><source>Theme</source><translation>Motyw</translation></message>
<message><source>Then it continues by itself.</source><translation>Potem wszystko ruszy dalej samo.</translation></message>
<message><source>There are %1 GGUF files in %2.</source><translation>Pliki GGUF w %2: %1.</translation></message>
<message><source>There are %1.</source><translation>Jest ich %1.</translation></message>
<message><source>There are no peers in a swarm of one computer.</source><translation>W roju z jednego komputera nie ma peerów.</translation></message>
<message><source>There is no %1 at the level %2.</source><translation>Nie ma %1 na poziomie %2.</translation></message>
<message><source>There is no QR code in that picture, or it cannot be read.</source><translation>Na tym obrazie nie ma kodu QR albo nie da się go odczytać.</translation></message>
<message><source>There is no Waggle on %1.</source><translation>Na %1 nie ma Waggle.</translation></message>
<message><source>There is no grader %1.</source><translation>Nie ma sposobu oceniania %1.</translation></message>
<message><source>There is no invite in that file.</source><translation>W tym pliku nie ma zaproszenia.</translation></message>
<message><source>There is no model in %1.</source><translation>W %1 nie ma modelu.</translation></message>
<message><source>There is no model in %1: %2 is missing.</source><translation>W %1 nie ma modelu: brakuje %2.</translation></message>
<message><source>There is no run %1.</source><translation>Nie ma przebiegu %1.</translation></message>
<message><source>There is no setting %1.</source><translation>Nie ma ustawienia %1.</translation></message>
<message><source>There is no sharing strategy %1.</source><translation>Nie ma strategii dzielenia się %1.</translation></message>
<message><source>There is no tokenizer.json in %1.</source><translation>W %1 nie ma tokenizer.json.</translation></message>
<message><source>There is no update rule %1.</source><translation>Nie ma reguły uczenia %1.</translation></message>
<message><source>There is nothing to answer.</source><translation>Nie ma na co odpowiadać.</translation></message>
<message><source>There is nothing to decide.</source><translation>Nie ma o czym decydować.</translation></message>
<message><source>There is something at %1 already.</source><translation>Pod %1 już coś jest.</translation></message>
<message><source>There is something in %1 already.</source><translation>W %1 już coś jest.</translation></message>
<message><source>There is too little free memory for the race.</source><translation>Na wyścig jest za mało wolnej pamięci.</translation></message>
<message><source>There is too little free memory to copy the weights of now.</source><translation>Za mało wolnej pamięci, by skopiować bieżące wagi.</translation></message>
<message><source>There, waggle cuda --get uses the NVIDIA card</source><translation>Tam waggle cuda --get włącza kartę NVIDIA</translation></message>
<message><source>These are the peers of before.</source><translation>To wcześniejsze peery.</translation></message>
<message><source>These settings are too long to be kept.</source><translation>Te ustawienia są zbyt długie, by je zapisać.</translation></message>
<message><source>They are downloaded from the swarm's members.</source><translation>Są pobierane od członków roju.</translation></message>
<message><source>They are removed for good. Training stops first, then Waggle closes.</source><translation>Zostaną usunięte na zawsze. Najpierw zatrzyma się trening, potem Waggle się zamknie.</translation></message>
<message><source>They have to be downloaded again.</source><translation>Trzeba je pobrać ponownie.</translation></message>
<message><source>They were set aside: start again to begin anew.</source><translation>Zostały odłożone na bok: uruchom ponownie, by zacząć od nowa.</translation></message>
<message><source>This Hugging Face address is not of a model.</source><translation>Ten adres w Hugging Face nie prowadzi do modelu.</translation></message>
<message><source>This backup holds another key than it says.</source><translation>Ta kopia zapasowa zawiera inny klucz, niż podaje.</translation></message>
<message><source>This backup is damaged.</source><translation>Ta kopia zapasowa jest uszkodzona.</translation></message>
<message><source>This cannot be dropped here</source><translation>Tego nie można tu upuścić</translation></message>
<message><source>This charter cannot be read: %1.</source><translation>Nie można odczytać tej karty roju: %1.</translation></message>
<message><source>This charter is malformed.</source><translation>Ta karta roju jest nieprawidłowa.</translation></message>
<message><source>This charter is not the one the invite names.</source><translation>To nie jest karta roju, którą wskazuje zaproszenie.</translation></message>
<message><source>This charter is too large.</source><translation>Ta karta roju jest za duża.</translation></message>
<message><source>This charter's specialties cannot be made here: %1.</source><translation>Nie można tu utworzyć specjalności tej karty roju: %1.</translation></message>
<message><source>This command cannot be read: %1.</source><translation>Nie można odczytać tego polecenia: %1.</translation></message>
<message><source>This computer cannot join a swarm: its network part is missing.</source><translation>Ten komputer nie może dołączyć do roju: brakuje części sieciowej.</translation></message>
<message><source>This computer does not tell its temperature.</source><translation>Ten komputer nie podaje swojej temperatury.</translation></message>
<message><source>This computer does not tell whether a program fills the screen.</source><translation>Ten komputer nie podaje, czy jakiś program zajmuje cały ekran.</translation></message>
<message><source>This computer does not tell whether its network is metered.</source><translation>Ten komputer nie podaje, czy jego sieć jest taryfowa.</translation></message>
<message><source>This computer does not tell whether you are using it.</source><translation>Ten komputer nie podaje, czy go używasz.</translation></message>
<message><source>This computer does not tell which programs run.</source><translation>Ten komputer nie podaje, jakie programy działają.</translation></message>
<message><source>This computer does not tell yet how much energy today took.</source><translation>Ten komputer nie podaje jeszcze, ile energii dziś zużyto.</translation></message>
<message><source>This computer makes other questions than %1 agreed on.</source><translation>Ten komputer tworzy inne pytania, niż uzgodniono w %1.</translation></message>
<message><source>This computer may be very busy. Your model is safe. It says: %1.</source><translation>Ten komputer może być bardzo obciążony. Twój model jest bezpieczny. Komunikat: %1.</translation></message>
<message><source>This computer may have too little memory for this model.</source><translation>Ten komputer może mieć za mało pamięci na ten model.</translation></message>
<message><source>This computer only</source><translation>Tylko ten komputer</translation></message>
<message><source>This computer takes part through gateways alone, and none is named.</source><translation>Ten komputer uczestniczy tylko przez bramy, a żadnej nie podano.</translation></message>
<message><source>This computer takes part through gateways alone, and this invite names none.</source><translation>Ten komputer uczestniczy tylko przez bramy, a to zaproszenie żadnej nie podaje.</translation></message>
<message><source>This computer was chosen to be alone.</source><translation>Wybrano, że ten komputer pracuje sam.</translation></message>
<message><source>This computer's clock and that of another one differ by %1: one of the two is wrong.</source><translation>Zegar tego komputera i zegar innego różnią się o %1: jeden z nich chodzi źle.</translation></message>
<message><source>This computer's clock is %1 fast.</source><translation>Zegar tego komputera spieszy się o %1.</translation></message>
<message><source>This computer's clock is %1 slow.</source><translation>Zegar tego komputera spóźnia się o %1.</translation></message>
<message><source>This computer's network proxy cannot be used.</source><translation>Nie można użyć serwera proxy tego komputera.</translation></message>
<message><source>This computer's shared memory, /dev/shm, cannot be used: %1.</source><translation>Nie można użyć pamięci współdzielonej tego komputera, /dev/shm: %1.</translation></message>
<message><source>This conversation is as long as one can be. Clear it to begin another.</source><translation>Ta rozmowa nie może być dłuższa. Wyczyść ją, by zacząć nową.</translation></message>
<message><source>This ends by itself once it keeps running. The log says why it ended: waggle log.</source><translation>To minie samo, gdy proces zacznie działać stabilnie. Powód jest w logu: waggle log.</translation></message>
<message><source>This engine belongs to a window.</source><translation>Ten silnik należy do okna.</translation></message>
<message><source>This invite %1.</source><translation>To zaproszenie jest nieprawidłowe (%1).</translation></message>
<message><source>This invite is to First light as it was before.</source><translation>To zaproszenie prowadzi do First light w dawnej postaci.</translation></message>
<message><source>This invite works only on your own network, such as your Wi-Fi at home: Waggle found no address that can be reached from outside.</source><translation>To zaproszenie działa tylko w Twojej sieci, na przykład w domowym Wi-Fi: Waggle nie znalazł adresu dostępnego z zewnątrz.</translation></message>
<message><source>This is a recorded run: nothing was done.</source><translation>To nagranie: nic nie zrobiono.</translation></message>
<message><source>This is a recorded run: there is no model to ask.</source><translation>To nagranie: nie ma modelu, którego można zapytać.</translation></message>
<message><source>This is all that Waggle keeps on this computer. What you choose is removed, and nothing else; the program itself is uninstalled like any other.</source><translation>To wszystko, co Waggle przechowuje na tym komputerze. Usunięte zostanie tylko to, co wybierzesz; sam program odinstalujesz tak jak każdy inny.</translation></message>
<message><source>This is no backup of an identity.</source><translation>To nie jest kopia zapasowa tożsamości.</translation></message>
<message><source>This is no picture that Waggle can read.</source><translation>Waggle nie potrafi odczytać tego obrazu.</translation></message>
<message><source>This is not an invite link: one begins with waggle://join?</source><translation>To nie jest link z zaproszeniem: taki zaczyna się od waggle://join?</translation></message>
<message><source>This is the newest saved state.</source><translation>To najnowszy zapisany stan.</translation></message>
<message><source>This kind of model cannot be exported: its weights have another form here.</source><translation>Modelu tego rodzaju nie można wyeksportować: jego wagi mają tu inną postać.</translation></message>
<message><source>This link is not from Hugging Face.</source><translation>Ten link nie pochodzi z Hugging Face.</translation></message>
<message><source>This link is too long for a QR code. They open it, and Waggle shows them the swarm before they join.</source><translation>Ten link jest za długi na kod QR. Druga osoba go otwiera, a Waggle pokaże jej rój, zanim dołączy.</translation></message>
<message numerus="yes"><source>This message is %n characters too long.</source><translation><numerusform>Ta wiadomość jest za długa o %n znak.</numerusform><numerusform>Ta wiadomość jest za długa o %n znaki.</numerusform><numerusform>Ta wiadomość jest za długa o %n znaków.</numerusform></translation></message>
<message><source>This message is too long for this model, which reads %1 tokens at a time.</source><translation>Ta wiadomość jest za długa dla tego modelu, który czyta naraz do %1 tokenów.</translation></message>
<message><source>This model does not fit: it needs at least %1 GB of memory, and Waggle may use %2 GB.</source><translation>Ten model się nie mieści: potrzebuje co najmniej %1 GB pamięci, a Waggle może użyć %2 GB.</translation></message>
<message><source>This model has no layer that LoRA could train.</source><translation>Ten model nie ma warstwy, którą mogłaby trenować LoRA.</translation></message>
<message><source>This model is being converted already.</source><translation>Ten model jest już konwertowany.</translation></message>
<message><source>This model is being downloaded already.</source><translation>Ten model jest już pobierany.</translation></message>
<message><source>This model is being downloaded.</source><translation>Ten model jest pobierany.</translation></message>
<message><source>This model is too large to be loaded a second time.</source><translation>Ten model jest zbyt duży, by załadować go drugi raz.</translation></message>
<message><source>This model is trained already.</source><translation>Ten model jest już trenowany.</translation></message>
<message><source>This model is trained now.</source><translation>Ten model jest teraz trenowany.</translation></message>
<message><source>This model reads %1 tokens at a time, and the questions are longer.</source><translation>Ten model czyta naraz do %1 tokenów, a pytania są dłuższe.</translation></message>
<message><source>This model was never taught to chat, and it does not remember earlier messages.</source><translation>Tego modelu nie uczono rozmawiać i nie pamięta on wcześniejszych wiadomości.</translation></message>
<message><source>This model was quantised with %1. Opening it needs gptqmodel, which Waggle does not include.</source><translation>Ten model skwantyzowano za pomocą %1. Do jego otwarcia potrzeba gptqmodel, którego Waggle nie zawiera.</translation></message>
<message><source>This name has characters that cannot be shown.</source><translation>Ta nazwa ma znaki, których nie da się pokazać.</translation></message>
<message><source>This name is too long.</source><translation>Ta nazwa jest za długa.</translation></message>
<message><source>This names no model.</source><translation>To nie wskazuje żadnego modelu.</translation></message>
<message><source>This one</source><translation>Ta</translation></message>
<message><source>This passphrase does not open the backup, or the backup was changed.</source><translation>To hasło nie otwiera kopii zapasowej albo kopia została zmieniona.</translation></message>
<message><source>This question has become too old to be shared.</source><translation>To pytanie jest już zbyt stare, by je udostępnić.</translation></message>
<message><source>This round was not finished.</source><translation>Ta runda nie została ukończona.</translation></message>
<message><source>This run cannot be repeated.</source><translation>Tego przebiegu nie da się powtórzyć.</translation></message>
<message><source>This step has taken %1 so far.</source><translation>Ten krok trwa już %1.</translation></message>
<message><source>This swarm does not ask such questions.</source><translation>Ten rój nie zadaje takich pytań.</translation></message>
<message><source>This swarm is not known here.</source><translation>Ten rój nie jest tu znany.</translation></message>
<message><source>This swarm is open to everybody: nothing proves who wrote an answer, so nobody is ranked.</source><translation>Ten rój jest otwarty dla wszystkich: nic nie dowodzi, kto napisał odpowiedź, więc nie ma rankingu.</translation></message>
<message><source>This swarm is taken part in now.</source><translation>W tym roju właśnie bierzesz udział.</translation></message>
<message><source>This swarm is this computer only: there is nobody to compare with.</source><translation>Ten rój to tylko ten komputer: nie ma się z kim porównać.</translation></message>
<message><source>This swarm needs a newer Waggle: update this one.</source><translation>Ten rój wymaga nowszej wersji Waggle: zaktualizuj program.</translation></message>
<message><source>This swarm was chosen to be just this computer: nothing is sent and nothing received.</source><translation>Wybrano, że ten rój to tylko ten komputer: nic nie jest wysyłane ani odbierane.</translation></message>
<message><source>This swarm was looked at before the engine started again.</source><translation>Ten rój oglądano przed ponownym uruchomieniem silnika.</translation></message>
<message><source>This swarm was made for an older Waggle: somebody has to create it anew.</source><translation>Ten rój utworzono dla starszej wersji Waggle: ktoś musi utworzyć go od nowa.</translation></message>
<message><source>This takes a few seconds.</source><translation>To potrwa kilka sekund.</translation></message>
<message><source>This time alone won, %1 to %2</source><translation>Tym razem wygrała samodzielność, %1 do %2</translation></message>
<message><source>Those who answer cannot train with this Waggle: the page Peers says why. You are training on your own.</source><translation>Ci, którzy odpowiadają, nie mogą trenować z tą wersją Waggle: powód podaje strona Peery. Trenujesz w pojedynkę.</translation></message>
<message><source>Through a gateway: this computer calls nobody. Your part counts all the same.</source><translation>Przez bramę: ten komputer z nikim się nie łączy. Twój udział liczy się tak samo.</translation></message>
<message><source>Through a relay: your router blocks calls. Your part counts all the same.</source><translation>Przez przekaźnik: Twój router blokuje połączenia. Twój udział liczy się tak samo.</translation></message>
<message><source>Through other computers</source><translation>Przez inne komputery</translation></message>
<message><source>Thursday</source><translation>Czwartek</translation></message>
<message><source>Time</source><translation>Czas</translation></message>
<message><source>Time (s)</source><translation>Czas (s)</translation></message>
<message><source>Time intervals</source><translation>Przedziały czasu</translation></message>
<message><source>Times shown here follow that clock.</source><translation>Podane tu godziny są według tamtego zegara.</translation></message>
<message><source>Tiny programs</source><translation>Malutkie programy</translation></message>
<message><source>Title</source><translation>Tytuł</translation></message>
<message><source>Title of the questions of %1</source><translation>Tytuł pytań z %1</translation></message>
<message><source>To load the model again takes %1 GB, and %2 GB are free of the %3 GB of memory that you allow.</source><translation>Ponowne załadowanie modelu wymaga %1 GB, a z dozwolonych %3 GB pamięci wolne jest %2 GB.</translation></message>
<message><source>To load the model again takes %1 GB, and %2 GB of memory are free for it.</source><translation>Ponowne załadowanie modelu wymaga %1 GB, a wolne na to jest %2 GB pamięci.</translation></message>
<message><source>Today's energy is used up: %1 of %2 kWh, estimated.</source><translation>Dzisiejsza energia jest wyczerpana: %1 z %2 kWh (szacunkowo).</translation></message>
<message><source>Today's energy lasts: %1 of %2 kWh, estimated.</source><translation>Dzisiejszej energii wystarcza: %1 z %2 kWh (szacunkowo).</translation></message>
<message><source>Too close to call: sharing %1, alone %2</source><translation>Zbyt blisko remisu: razem %1, osobno %2</translation></message>
<message><source>Too early to say</source><translation>Za wcześnie, by ocenić</translation></message>
<message><source>Too large</source><translation>Za duży</translation></message>
<message><source>Top p</source><translation>Top p</translation></message>
<message><source>Trackio</source><translation>Trackio</translation></message>
<message><source>Train %1</source><translation>Trenuj %1</translation></message>
<message><source>Train Waggle's tiny starter</source><translation>Trenuj malutki starter</translation></message>
<message><source>Train a bigger model: %1</source><translation>Trenuj większy model: %1</translation></message>
<message><source>Train alone</source><translation>Trenuj samodzielnie</translation></message>
<message><source>Train alone for now</source><translation>Na razie trenuj w pojedynkę</translation></message>
<message><source>Train in %1</source><translation>Trenuj w %1</translation></message>
<message><source>Train this one</source><translation>Trenuj ten</translation></message>
<message><source>Train with your friends, your class or your lab: create a swarm and invite them, or join with an invite.</source><translation>Trenuj ze znajomymi, z klasą albo z laboratorium: utwórz rój i ich zaproś. Albo skorzystaj z zaproszenia, które masz.</translation></message>
<message><source>Trained</source><translation>Wytrenowany</translation></message>
<message><source>Training</source><translation>Trenuje</translation></message>
<message><source>Training cannot be started.</source><translation>Nie można uruchomić treningu.</translation></message>
<message><source>Training continues in %1. The page Swarms says why.</source><translation>Trening trwa dalej w %1. Powód podaje strona Roje.</translation></message>
<message><source>Training continues while the window is closed. Pause on Home, in the menu bar, or with %1.</source><translation>Trening trwa także przy zamkniętym oknie. Wstrzymasz go na stronie Start, na pasku menu lub przez %1.</translation></message>
<message><source>Training continues while the window is closed. Pause on Home, in the tray, or with %1.</source><translation>Trening trwa także przy zamkniętym oknie. Wstrzymasz go na stronie Start, w zasobniku lub przez %1.</translation></message>
<message><source>Training continues.</source><translation>Trening trwa dalej.</translation></message>
<message><source>Training continues. They are tried again at the engine's next start.</source><translation>Trening trwa. Kolejna próba przy następnym uruchomieniu silnika.</translation></message>
<message><source>Training does not wait for peers.</source><translation>Trening nie czeka na peerów.</translation></message>
<message><source>Training does not wait for them.</source><translation>Trening na nich nie czeka.</translation></message>
<message><source>Training ended with code %1.</source><translation>Trening zakończył się kodem %1.</translation></message>
<message><source>Training hours</source><translation>Godziny treningu</translation></message>
<message><source>Training in %1 begins after a first test.</source><translation>Trening w %1 zacznie się po pierwszym teście.</translation></message>
<message><source>Training in %1 begins in a moment.</source><translation>Trening w %1 zaraz się zacznie.</translation></message>
<message><source>Training in %1, round %2.</source><translation>Trening w %1, runda %2.</translation></message>
<message><source>Training is not running.</source><translation>Trening nie działa.</translation></message>
<message><source>Training is not running. The swarms you know appear here when it runs again.</source><translation>Trening nie działa. Znane Ci roje pojawią się tutaj, gdy znów ruszy.</translation></message>
<message><source>Training is not running: nothing was done.</source><translation>Trening nie działa: nic nie zrobiono.</translation></message>
<message><source>Training is on hold.</source><translation>Trening jest wstrzymany.</translation></message>
<message><source>Training is starting again.</source><translation>Trening uruchamia się ponownie.</translation></message>
<message><source>Training ran out of memory, and the system ended it.</source><translation>Treningowi zabrakło pamięci i system go zakończył.</translation></message>
<message><source>Training resumes by itself.</source><translation>Trening wznowi się sam.</translation></message>
<message><source>Training stands still in a round that is not stored yet.</source><translation>Trening stoi w rundzie, która nie jest jeszcze zapisana.</translation></message>
<message numerus="yes"><source>Training starts again by itself in %n seconds.</source><translation><numerusform>Za %n sekundę trening sam zacznie się znowu.</numerusform><numerusform>Za %n sekundy trening sam zacznie się znowu.</numerusform><numerusform>Za %n sekund trening sam zacznie się znowu.</numerusform></translation></message>
<message><source>Training starts again by itself.</source><translation>Trening sam zacznie się znowu.</translation></message>
<message><source>Training starts automatically.</source><translation>Trening rusza automatycznie.</translation></message>
<message><source>Training starts without a window</source><translation>Trening startuje bez okna</translation></message>
<message><source>Training stopped %1 times in a row.</source><translation>Trening zatrzymał się (ile razy z rzędu: %1).</translation></message>
<message><source>Training stopped unexpectedly.</source><translation>Trening zatrzymał się nieoczekiwanie.</translation></message>
<message><source>Training time</source><translation>Czas treningu</translation></message>
<message><source>Training used more than the %1 GB of memory that you allow</source><translation>Trening zużył więcej pamięci niż dozwolone %1 GB</translation></message>
<message><source>Trains for three rounds on this computer. Nothing is shared or saved.</source><translation>Trenuje przez trzy rundy na tym komputerze. Nic nie jest udostępniane ani zapisywane.</translation></message>
<message><source>Treat it as if you had never muted or blocked it.</source><translation>Traktuj go tak, jakby nigdy nie był wyciszony ani zablokowany.</translation></message>
<message><source>Trusted</source><translation>Zaufany</translation></message>
<message><source>Trusted.</source><translation>Zaufany.</translation></message>
<message><source>Try again</source><translation>Spróbuj ponownie</translation></message>
<message><source>Try again in a moment.</source><translation>Spróbuj ponownie za chwilę.</translation></message>
<message><source>Try again later, or look where you got this Waggle.</source><translation>Spróbuj później albo sprawdź tam, skąd masz ten program Waggle.</translation></message>
<message><source>Try again later.</source><translation>Spróbuj ponownie później.</translation></message>
<message><source>Try again later; what was downloaded is kept.</source><translation>Spróbuj ponownie później; to, co już pobrano, zostaje.</translation></message>
<message><source>Try again when it does.</source><translation>Spróbuj ponownie, gdy to się zmieni.</translation></message>
<message><source>Try again.</source><translation>Spróbuj ponownie.</translation></message>
<message><source>Try another number.</source><translation>Spróbuj innego numeru.</translation></message>
<message><source>Try it</source><translation>Wypróbuj</translation></message>
<message><source>Try your model</source><translation>Wypróbuj swój model</translation></message>
<message><source>Trying how to ask this model: %1 of %2 ways</source><translation>Sprawdzanie, jak najlepiej pytać ten model: sposób %1 z %2</translation></message>
<message><source>Tuesday</source><translation>Wtorek</translation></message>
<message><source>Turn off “Train alone” in Settings until members have sent them.</source><translation>Wyłącz w ustawieniach „Trenuj samodzielnie”, aż członkowie je przyślą.</translation></message>
<message><source>Turn off “Train alone” in Settings, and start again.</source><translation>Wyłącz w ustawieniach „Trenuj samodzielnie” i uruchom ponownie.</translation></message>
<message><source>Turns off animations.</source><translation>Wyłącza animacje.</translation></message>
<message><source>Two practice swarms on this computer, one of which shares</source><translation>Dwa ćwiczebne roje na tym komputerze, z których jeden się dzieli</translation></message>
<message><source>Two small swarms on this computer: one shares, one does not. It takes two minutes.</source><translation>Dwa małe roje na tym komputerze: jeden się dzieli, drugi nie. To potrwa dwie minuty.</translation></message>
<message><source>Two small swarms train here, one sharing and one not. It takes about two minutes.</source><translation>Dwa małe roje trenują tu obok siebie: jeden się dzieli, drugi nie. To trwa około dwóch minut.</translation></message>
<message><source>Two swarms of four copies begin with the same small model. In one, each copy learns only from its own answers; in the other, they share them. Nothing leaves this computer, and your own model is not touched.</source><translation>Dwa roje po cztery kopie zaczynają z tym samym małym modelem. W jednym każda kopia uczy się tylko na własnych odpowiedziach, w drugim dzielą się nimi. Nic nie opuszcza tego komputera, a Twój model pozostaje nietknięty.</translation></message>
<message><source>Unlikely words count more</source><translation>Mało prawdopodobne słowa liczą się bardziej</translation></message>
<message><source>Unlimited</source><translation>Bez limitu</translation></message>
<message><source>Unlock it; on Linux, GNOME Keyring or KWallet has to run. Waggle keeps a token nowhere else.</source><translation>Odblokuj go; w systemie Linux musi działać GNOME Keyring lub KWallet. Waggle nie przechowuje tokenu nigdzie indziej.</translation></message>
<message><source>Unpack it first.</source><translation>Najpierw rozpakuj.</translation></message>
<message><source>Until I am away</source><translation>Do czasu, aż odejdę</translation></message>
<message><source>Until it is plugged in.</source><translation>Do podłączenia zasilania.</translation></message>
<message><source>Until the first round is saved, both are the same model.</source><translation>Do zapisania pierwszej rundy oba są tym samym modelem.</translation></message>
<message><source>Until tomorrow morning</source><translation>Do jutra rana</translation></message>
<message><source>Update Waggle to go on from it.</source><translation>Zaktualizuj Waggle, by móc kontynuować.</translation></message>
<message><source>Update Waggle, or have the charter corrected.</source><translation>Zaktualizuj Waggle albo poproś o poprawienie karty roju.</translation></message>
<message><source>Update Waggle.</source><translation>Zaktualizuj Waggle.</translation></message>
<message><source>Update rule</source><translation>Reguła uczenia</translation></message>
<message><source>Use %1.</source><translation>Użyj %1.</translation></message>
<message><source>Use 0 for exact numbers.</source><translation>Użyj 0 dla dokładnych liczb.</translation></message>
<message><source>Use letters, numbers and spaces.</source><translation>Użyj liter, cyfr i spacji.</translation></message>
<message><source>Use of %1</source><translation>Użycie: %1</translation></message>
<message><source>Use of this computer</source><translation>Korzystanie z tego komputera</translation></message>
<message><source>Use this model</source><translation>Użyj tego modelu</translation></message>
<message><source>Used %1 of its %2 examples.</source><translation>Wykorzystano %1 z jego %2 przykładów.</translation></message>
<message><source>Useful examples</source><translation>Przydatne przykłady</translation></message>
<message><source>Uses a quarter of the processor's cores, at least one, and gives way to other programs.</source><translation>Używa jednej czwartej rdzeni procesora, co najmniej jednego, i ustępuje innym programom.</translation></message>
<message><source>Valid backup of %1, your current identity.</source><translation>Prawidłowa kopia zapasowa: %1, Twoja obecna tożsamość.</translation></message>
<message><source>Valid backup of %1. This is not your current identity.</source><translation>Prawidłowa kopia zapasowa: %1. To nie jest Twoja obecna tożsamość.</translation></message>
<message><source>Verbatim, newest first. Kept in memory only.</source><translation>Dosłownie, od najnowszych. Tylko w pamięci.</translation></message>
<message><source>Waggle %1 is the newest.</source><translation>Waggle %1 to najnowsza wersja.</translation></message>
<message><source>Waggle %1 of %2 is newer than this one (%3).</source><translation>Waggle %1 z %2 jest nowszy niż ten (%3).</translation></message>
<message><source>Waggle cannot open a proposed change of a model.</source><translation>Waggle nie może otworzyć proponowanej zmiany modelu.</translation></message>
<message><source>Waggle cannot tell which of your swarms you trained in.</source><translation>Waggle nie wie, w którym z twoich rojów trenowano.</translation></message>
<message><source>Waggle cannot tell which of your swarms you trained in: choose one.</source><translation>Waggle nie wie, w którym z twoich rojów trenowano: wybierz jeden.</translation></message>
<message><source>Waggle cannot train models of the type %1 on this computer.</source><translation>Waggle nie potrafi trenować na tym komputerze modeli typu %1.</translation></message>
<message><source>Waggle cannot train models of the type %1.</source><translation>Waggle nie potrafi trenować modeli typu %1.</translation></message>
<message><source>Waggle checks first whether it fits</source><translation>Waggle najpierw sprawdzi, czy się zmieści</translation></message>
<message><source>Waggle computes on the processor until all of CUDA is here.</source><translation>Waggle liczy na procesorze, aż cała CUDA będzie na miejscu.</translation></message>
<message><source>Waggle computes on the processor. With CUDA it computes on this card.</source><translation>Waggle liczy na procesorze. Z CUDA liczy na tej karcie.</translation></message>
<message><source>Waggle could not switch to %1</source><translation>Nie udało się przejść na %1</translation></message>
<message><source>Waggle couldn't start its answer checker.</source><translation>Waggle nie mógł uruchomić sprawdzania odpowiedzi.</translation></message>
<message><source>Waggle does not download the GGUF file %1.</source><translation>Waggle nie pobiera pliku GGUF %1.</translation></message>
<message><source>Waggle does not know %1 rope.</source><translation>Waggle nie zna RoPE typu %1.</translation></message>
<message><source>Waggle does not know capped scores and attention both ways.</source><translation>Waggle nie obsługuje ograniczanych wartości uwagi ani uwagi w obie strony.</translation></message>
<message><source>Waggle does not know how GGUF calls the tokens of this model.</source><translation>Waggle nie wie, jak GGUF nazywa tokeny tego modelu.</translation></message>
<message><source>Waggle does not know the activation %1.</source><translation>Waggle nie zna funkcji aktywacji %1.</translation></message>
<message><source>Waggle does not know these rotary embeddings in models of type gemma3_text.</source><translation>Waggle nie zna takich osadzeń rotacyjnych w modelach typu gemma3_text.</translation></message>
<message><source>Waggle does not know these types of layers in models of type %1.</source><translation>Waggle nie zna takich typów warstw w modelach typu %1.</translation></message>
<message><source>Waggle does not know weights in %1.</source><translation>Waggle nie zna wag w %1.</translation></message>
<message><source>Waggle does not train quantised models.</source><translation>Waggle nie trenuje skwantyzowanych modeli.</translation></message>
<message><source>Waggle goes through web proxies (HTTP), not through SOCKS: choose one, or none.</source><translation>Waggle działa przez serwery proxy WWW (HTTP), a nie przez SOCKS: wybierz taki albo żaden.</translation></message>
<message><source>Waggle is going there; your model comes along.</source><translation>Waggle tam przechodzi; Twój model idzie razem.</translation></message>
<message><source>Waggle is open already, but its window does not answer.</source><translation>Waggle jest już otwarty, ale jego okno nie odpowiada.</translation></message>
<message><source>Waggle is starting; your swarms appear in a few seconds.</source><translation>Waggle się uruchamia; Twoje roje pojawią się za kilka sekund.</translation></message>
<message><source>Waggle is still starting.</source><translation>Waggle jeszcze się uruchamia.</translation></message>
<message><source>Waggle keeps its own in the folder events of its home.</source><translation>Waggle trzyma swoje w folderze events w folderze Waggle.</translation></message>
<message><source>Waggle keeps running in the background</source><translation>Waggle działa dalej w tle</translation></message>
<message><source>Waggle keeps trying.</source><translation>Waggle próbuje dalej.</translation></message>
<message><source>Waggle looks again every few seconds and continues by itself. What your model learned is kept.</source><translation>Waggle sprawdza co kilka sekund i sam ruszy dalej. To, czego model się nauczył, zostaje.</translation></message>
<message><source>Waggle looks for peers once it has started.</source><translation>Waggle poszuka innych, gdy się uruchomi.</translation></message>
<message><source>Waggle looks only when you ask, and installs nothing by itself.</source><translation>Waggle sprawdza tylko wtedy, gdy o to prosisz, i sam niczego nie instaluje.</translation></message>
<message><source>Waggle on %1</source><translation>Waggle na %1</translation></message>
<message><source>Waggle opens minimized</source><translation>Waggle otwiera się zminimalizowany</translation></message>
<message numerus="yes"><source>Waggle removed %n downloaded models to stay under your limit of %1 GB.</source><translation><numerusform>Waggle usunął %n pobrany model, aby nie przekroczyć Twojego limitu %1 GB.</numerusform><numerusform>Waggle usunął %n pobrane modele, aby nie przekroczyć Twojego limitu %1 GB.</numerusform><numerusform>Waggle usunął %n pobranych modeli, aby nie przekroczyć Twojego limitu %1 GB.</numerusform></translation></message>
<message><source>Waggle removed old saved states to stay under your limit of %1 GB.</source><translation>Waggle usunął stare zapisane stany, aby nie przekroczyć Twojego limitu %1 GB.</translation></message>
<message><source>Waggle takes files of questions: JSON lines (.jsonl) or tables (.csv), up to four.</source><translation>Waggle przyjmuje pliki z pytaniami: wiersze JSON (.jsonl) lub tabele (.csv), najwyżej cztery.</translation></message>
<message><source>Waggle trains a small language model here, in the background, together with other computers.</source><translation>Waggle trenuje tu w tle mały model językowy razem z innymi komputerami.</translation></message>
<message><source>Waggle tries again every minute and continues by itself. What your model learned is kept.</source><translation>Waggle próbuje co minutę i sam ruszy dalej. To, czego model się nauczył, zostaje.</translation></message>
<message><source>Waggle was upgraded or moved while it runs.</source><translation>Waggle zaktualizowano lub przeniesiono podczas działania.</translation></message>
<message><source>Waggle writes GGUF files of %1, and this model is of type %2.</source><translation>Waggle zapisuje pliki GGUF dla %1, a ten model jest typu %2.</translation></message>
<message><source>Waggle writes GGUF files of models with byte-level tokens, and this model has others.</source><translation>Waggle zapisuje pliki GGUF modeli z tokenami na poziomie bajtów, a ten model ma inne.</translation></message>
<message><source>Waggle writes no GGUF files of models with sliding windows.</source><translation>Waggle nie zapisuje plików GGUF modeli z przesuwnym oknem.</translation></message>
<message><source>Waggle's questions</source><translation>Pytania Waggle</translation></message>
<message><source>Waggle: ordinary computers learn together, peer to peer</source><translation>Waggle: zwykłe komputery uczą się razem, peer-to-peer</translation></message>
<message><source>Wait 10 minutes</source><translation>Czekaj 10 minut</translation></message>
<message><source>Wait 3 minutes</source><translation>Czekaj 3 minuty</translation></message>
<message><source>Wait 30 minutes</source><translation>Czekaj 30 minut</translation></message>
<message><source>Wait a moment, or look at its log.</source><translation>Poczekaj chwilę albo zajrzyj do logu.</translation></message>
<message><source>Wait for it, or stop it.</source><translation>Poczekaj na koniec albo zatrzymaj.</translation></message>
<message><source>Wait until that is done, then start again.</source><translation>Poczekaj, aż to się skończy, i uruchom ponownie.</translation></message>
<message><source>Wait until that is done, then try again.</source><translation>Poczekaj, aż to się skończy, i spróbuj ponownie.</translation></message>
<message><source>Wait until that is done.</source><translation>Poczekaj, aż to się skończy.</translation></message>
<message><source>Waiting</source><translation>Czeka</translation></message>
<message><source>Waiting for a better moment.</source><translation>Czeka na lepszy moment.</translation></message>
<message><source>Waiting for the engine that runs without a window</source><translation>Czekanie na silnik działający bez okna</translation></message>
<message><source>Waiting for you</source><translation>Czeka na Ciebie</translation></message>
<message><source>Waiting for your choice on Home.</source><translation>Czeka na Twój wybór na stronie Start.</translation></message>
<message><source>Waiting to be judged.</source><translation>Czeka na ocenę.</translation></message>
<message><source>Waiting to be used for learning.</source><translation>Czeka na użycie w nauce.</translation></message>
<message><source>Waiting until another engine has left this folder</source><translation>Czekanie, aż inny silnik zwolni ten folder</translation></message>
<message><source>Watch an example</source><translation>Zobacz przykład</translation></message>
<message><source>Watch it try</source><translation>Zobacz, jak próbuje</translation></message>
<message><source>Watch the race</source><translation>Obejrzyj wyścig</translation></message>
<message><source>Watts while training</source><translation>Waty podczas treningu</translation></message>
<message><source>Weakest first</source><translation>Od najsłabszej</translation></message>
<message><source>Wed</source><translation>śr</translation></message>
<message><source>Wednesday</source><translation>Środa</translation></message>
<message><source>Weights &amp; Biases</source><translation>Weights &amp; Biases</translation></message>
<message><source>Weights in 4 bits need bitsandbytes, which is not installed.</source><translation>Wagi 4-bitowe wymagają bitsandbytes, które nie jest zainstalowane.</translation></message>
<message><source>What answered is not Hugging Face.</source><translation>To, co odpowiedziało, nie jest Hugging Face.</translation></message>
<message><source>What computes on your NVIDIA graphics card.</source><translation>To, co liczy na Twojej karcie graficznej NVIDIA.</translation></message>
<message><source>What does Waggle do?</source><translation>Co robi Waggle?</translation></message>
<message><source>What does it cost?</source><translation>Ile to kosztuje?</translation></message>
<message><source>What else it asks</source><translation>O co jeszcze pyta</translation></message>
<message><source>What experiments keep to be faster next time.</source><translation>To, co eksperymenty zachowują, by następnym razem działać szybciej.</translation></message>
<message><source>What is 7 × 6?</source><translation>Ile to 7 × 6?</translation></message>
<message><source>What is shown</source><translation>Co jest pokazywane</translation></message>
<message><source>What is trained</source><translation>Co jest trenowane</translation></message>
<message><source>What it asks</source><translation>O co pyta</translation></message>
<message><source>What it can do</source><translation>Co potrafi</translation></message>
<message><source>What it does</source><translation>Co robi</translation></message>
<message><source>What it has learned fits in a folder that other programs can open.</source><translation>To, czego się nauczył, mieści się w folderze, który mogą otworzyć inne programy.</translation></message>
<message><source>What it has learned is kept. Choose another model, or another revision of it: owner/name@revision.</source><translation>To, czego się nauczył, zostaje. Wybierz inny model albo inną jego rewizję: owner/name@revision.</translation></message>
<message><source>What leaves my computer?</source><translation>Co opuszcza mój komputer?</translation></message>
<message><source>What next?</source><translation>Co dalej?</translation></message>
<message><source>What some peers gave as questions of %1 was something else, and was refused.</source><translation>To, co niektórzy podali jako pytania %1, było czymś innym i zostało odrzucone.</translation></message>
<message><source>What the axis counts</source><translation>Co liczy oś</translation></message>
<message><source>What the engine told, for replays and for reports.</source><translation>Przekazy silnika, do odtworzeń i raportów.</translation></message>
<message><source>What the model runs on.</source><translation>Na czym działa model.</translation></message>
<message><source>What the swarm asks; the space bar chooses</source><translation>O co pyta rój; spacja wybiera</translation></message>
<message><source>What the swarm trains on, with an example</source><translation>Co ćwiczy rój, z przykładem</translation></message>
<message><source>What the words mean</source><translation>Co znaczą te słowa</translation></message>
<message><source>What this model has learned is kept.</source><translation>To, czego nauczył się ten model, zostaje.</translation></message>
<message><source>What was downloaded is kept.</source><translation>To, co już pobrano, zostaje.</translation></message>
<message><source>What was downloaded is kept. Go on when there is a connection.</source><translation>To, co już pobrano, zostaje. Kontynuuj, gdy będzie połączenie.</translation></message>
<message><source>What was downloaded is kept. Try again when you are online.</source><translation>To, co pobrano, zostaje. Spróbuj ponownie, gdy będziesz online.</translation></message>
<message><source>What was known of peers could not be read.</source><translation>Nie udało się odczytać informacji o peerach.</translation></message>
<message><source>What was known of peers could not be read: whom you muted or blocked counts again.</source><translation>Nie udało się odczytać informacji o peerach: wyciszeni i zablokowani znów się liczą.</translation></message>
<message><source>What was learned there gives answers that are no numbers.</source><translation>To, czego się tam nauczono, daje odpowiedzi, które nie są liczbami.</translation></message>
<message><source>What was logged, for somebody who helps.</source><translation>Wpisy logu, dla kogoś, kto pomaga.</translation></message>
<message><source>What was seen so far stays here until the next race.</source><translation>To, co już widać, zostanie tu do następnego wyścigu.</translation></message>
<message><source>What you chose, and where this window stood.</source><translation>Twoje wybory i położenie tego okna.</translation></message>
<message><source>What you share</source><translation>Co udostępniasz</translation></message>
<message><source>What you type, unless you share it</source><translation>To, co piszesz, chyba że zechcesz to udostępnić</translation></message>
<message><source>What you would share, and what stays on this computer</source><translation>Co będzie udostępniane, a co zostaje na tym komputerze</translation></message>
<message><source>What your computer contributes is counted here from its first round on.</source><translation>Wkład Twojego komputera jest tu liczony od pierwszej rundy.</translation></message>
<message><source>What your model is asked now</source><translation>O co jest teraz pytany Twój model</translation></message>
<message><source>What your model learned is kept. Choose a swarm, or train alone for now.</source><translation>To, czego model się nauczył, zostaje. Wybierz rój albo trenuj na razie samodzielnie.</translation></message>
<message><source>What your model learned is read back and checked.</source><translation>To, czego nauczył się Twój model, jest odczytywane i sprawdzane.</translation></message>
<message><source>What your model's answers earn. All on one scale, up to %1</source><translation>Ile zdobywają odpowiedzi Twojego modelu. Wszystkie na jednej skali do %1</translation></message>
<message><source>What your models learned</source><translation>Czego nauczyły się Twoje modele</translation></message>
<message><source>When another swarm suits your model better</source><translation>Gdy inny rój lepiej pasuje do Twojego modelu</translation></message>
<message><source>When other programs want the processor too.</source><translation>Gdy inne programy też potrzebują procesora.</translation></message>
<message><source>When something goes wrong</source><translation>Gdy coś pójdzie źle</translation></message>
<message><source>When to train</source><translation>Kiedy trenować</translation></message>
<message><source>When you log in</source><translation>Gdy się logujesz</translation></message>
<message><source>When your model solves something for the first time</source><translation>Gdy Twój model rozwiąże coś po raz pierwszy</translation></message>
<message><source>Where data costs money, if the system reports it.</source><translation>Gdy transfer kosztuje, jeśli system o tym informuje.</translation></message>
<message><source>Where others reach this computer. A fixed one can be opened in a router.</source><translation>Gdzie inni mogą połączyć się z tym komputerem. Stały port można otworzyć w routerze.</translation></message>
<message><source>Where own answers fail</source><translation>Gdzie własne odpowiedzi zawodzą</translation></message>
<message><source>Where pip installed Waggle, its torch brings CUDA along on Linux.</source><translation>Gdzie Waggle zainstalował pip, w systemie Linux torch przynosi CUDA ze sobą.</translation></message>
<message><source>Where the backup lies</source><translation>Gdzie jest kopia zapasowa</translation></message>
<message><source>Whether you had paused could not be read, so training is paused.</source><translation>Nie udało się odczytać, czy trening był wstrzymany, więc trening jest wstrzymany.</translation></message>
<message><source>Which examples of peers your model learns from, and how strongly.</source><translation>Z których przykładów od peerów uczy się Twój model i jak mocno.</translation></message>
<message><source>Which model it is meant for</source><translation>Do jakiego modelu jest przeznaczony</translation></message>
<message><source>Which model, and with whom?</source><translation>Jaki model i z kim?</translation></message>
<message><source>Which of them light up</source><translation>Które się zaświecą</translation></message>
<message><source>Which one is the model of now?</source><translation>Która jest od obecnego modelu?</translation></message>
<message><source>Which one is your model now?</source><translation>Która jest od Twojego obecnego modelu?</translation></message>
<message><source>While it trains. The screen may go dark, and a closed lid still sleeps.</source><translation>Gdy trenuje. Ekran może zgasnąć, a po zamknięciu pokrywy komputer i tak zaśnie.</translation></message>
<message><source>While plugged in</source><translation>Przy zasilaniu z sieci</translation></message>
<message><source>While this computer is in the swarm, it serves a page for a projector, which shows who is here and what was found, and gives everybody on your network who opens it an invite. Your network sees that Waggle runs here, and computers with Windows take part through this one.</source><translation>Dopóki ten komputer jest w roju, udostępnia stronę na projektor: widać na niej, kto tu jest i co znaleziono, a każdy w Twojej sieci, kto ją otworzy, dostaje zaproszenie. Twoja sieć widzi, że działa tu Waggle, a komputery z systemem Windows uczestniczą przez ten komputer.</translation></message>
<message><source>While this window is not in front</source><translation>Gdy to okno nie jest na wierzchu</translation></message>
<message><source>While you use the computer</source><translation>Gdy używasz komputera</translation></message>
<message><source>Who are you?</source><translation>Kim jesteś?</translation></message>
<message><source>Who should your model learn with?</source><translation>Z kim ma się uczyć twój model?</translation></message>
<message><source>Who you are</source><translation>Kim jesteś</translation></message>
<message><source>Whoever opens them sees chosen names, and can join.</source><translation>Kto je otworzy, zobaczy wybrane nazwy i może dołączyć.</translation></message>
<message><source>Whoever wrote the charter has to add "questions_digest": "%1". That makes a swarm of its own, with new invites.</source><translation>Autor karty roju musi dodać "questions_digest": "%1". Powstanie wtedy osobny rój z nowymi zaproszeniami.</translation></message>
<message><source>Whoever wrote the charter has to choose another specialty.</source><translation>Autor karty roju musi wybrać inną specjalność.</translation></message>
<message><source>Whose questions</source><translation>Czyje pytania</translation></message>
<message><source>Why a test first</source><translation>Dlaczego najpierw test</translation></message>
<message><source>Why it begins so low</source><translation>Dlaczego zaczyna tak nisko</translation></message>
<message><source>Why it contributes or waits</source><translation>Dlaczego uczestniczy lub czeka</translation></message>
<message><source>Why?</source><translation>Dlaczego?</translation></message>
<message><source>Window and engine must be of one version.</source><translation>Okno i silnik muszą być w tej samej wersji.</translation></message>
<message><source>With %1 of them your model earned %2 of 1 on average. Its best answer:</source><translation>Za %1 z nich Twój model otrzymał średnio %2 z 1. Jego najlepsza odpowiedź:</translation></message>
<message><source>With more than one, each step learns from a part of the examples.</source><translation>Gdy jest ich więcej niż jeden, każdy krok uczy się z części przykładów.</translation></message>
<message><source>With peers</source><translation>Z peerami</translation></message>
<message><source>With so few questions, it may really be %1 to %2 of 100. A full test follows.</source><translation>Przy tak niewielu pytaniach naprawdę może to być od %1 do %2 na 100. Potem odbędzie się pełny test.</translation></message>
<message><source>With whom</source><translation>Z kim</translation></message>
<message><source>Without a tray, closing ends Waggle.</source><translation>Bez zasobnika zamknięcie kończy Waggle.</translation></message>
<message><source>Without an invite to it you can never come back.</source><translation>Bez zaproszenia nigdy nie wrócisz do tego roju.</translation></message>
<message><source>Word problems</source><translation>Zadania z treścią</translation></message>
<message><source>Word sequence reversal</source><translation>Odwracanie kolejności słów</translation></message>
<message><source>Word sorting</source><translation>Sortowanie słów</translation></message>
<message><source>Worked out from the first round on.</source><translation>Wyliczane od pierwszej rundy.</translation></message>
<message><source>Works with routers that allow UPnP.</source><translation>Działa z routerami, które pozwalają na UPnP.</translation></message>
<message><source>Write a message; Enter sends it, Shift+Enter adds a line</source><translation>Napisz wiadomość; Enter wysyła, Shift+Enter dodaje wiersz</translation></message>
<message><source>Write a text in quotes, or a number.</source><translation>Wpisz tekst w cudzysłowie albo liczbę.</translation></message>
<message><source>Write https:// in front of it, or unset %1.</source><translation>Wpisz przed nim https:// albo usuń zmienną %1.</translation></message>
<message><source>Write it in quotes.</source><translation>Wpisz w cudzysłowie.</translation></message>
<message><source>Write messages as [{"role": "user", "content": "..."}].</source><translation>Zapisz wiadomości jako [{"role": "user", "content": "..."}].</translation></message>
<message><source>Write one object on each line, such as {"question": "...", "answer": "..."}.</source><translation>Zapisz w każdym wierszu jeden obiekt, np. {"question": "...", "answer": "..."}.</translation></message>
<message><source>Write one on each line, with its answer.</source><translation>Zapisz jedno w każdym wierszu, z odpowiedzią.</translation></message>
<message><source>Write something first.</source><translation>Najpierw coś napisz.</translation></message>
<message><source>Write the questions as CSV or JSON lines.</source><translation>Zapisz pytania jako CSV lub wiersze JSON.</translation></message>
<message><source>Write them as [{"role": "user", "content": "..."}].</source><translation>Zapisz je jako [{"role": "user", "content": "..."}].</translation></message>
<message><source>Writing it as it is after the step in progress.</source><translation>Zapisywanie stanu po bieżącym kroku.</translation></message>
<message><source>Written by the creator of this swarm. Waggle did not check these questions and their answers.</source><translation>Napisane przez twórcę tego roju. Waggle nie sprawdził tych pytań ani odpowiedzi.</translation></message>
<message><source>Written to %1, read again, and it opens.</source><translation>Zapisano w %1 i odczytano ponownie; kopia się otwiera.</translation></message>
<message numerus="yes"><source>Written to %1: %n rounds of training.</source><translation><numerusform>Zapisano w %1: %n runda treningu.</numerusform><numerusform>Zapisano w %1: %n rundy treningu.</numerusform><numerusform>Zapisano w %1: %n rund treningu.</numerusform></translation></message>
<message><source>You</source><translation>Ty</translation></message>
<message><source>You answer a puzzle, then your model does.</source><translation>Najpierw Ty rozwiązujesz zagadkę, potem Twój model.</translation></message>
<message><source>You are away.</source><translation>Nie ma Cię przy komputerze.</translation></message>
<message><source>You are here</source><translation>Tu jesteś</translation></message>
<message><source>You are in %1</source><translation>Jesteś w roju %1</translation></message>
<message><source>You are in this swarm already.</source><translation>Jesteś już w tym roju.</translation></message>
<message><source>You are in this swarm, but have not met these computers yet. Joining them takes a few seconds. Your model keeps what it learned; round %2 continues.</source><translation>Jesteś w tym roju, ale nie znasz jeszcze tych komputerów. Dołączenie do nich zajmie kilka sekund. Twój model zachowa to, czego się nauczył; runda %2 będzie kontynuowana.</translation></message>
<message><source>You are still training %1.</source><translation>Nadal trenujesz %1.</translation></message>
<message><source>You are using the computer.</source><translation>Używasz komputera.</translation></message>
<message><source>You blocked it: neither of you learns from the other.</source><translation>Zablokowano: żadne nie uczy się od drugiego.</translation></message>
<message><source>You can come back at any time.</source><translation>Możesz wrócić w każdej chwili.</translation></message>
<message numerus="yes"><source>You can download them again.</source><translation><numerusform>Możesz go pobrać ponownie.</numerusform><numerusform>Możesz je pobrać ponownie.</numerusform><numerusform>Możesz je pobrać ponownie.</numerusform></translation></message>
<message><source>You can leave this page: Waggle tells you how it ends.</source><translation>Możesz opuścić tę stronę: Waggle powie, jak się skończyło.</translation></message>
<message><source>You chose to train on this computer only: going there ends that.</source><translation>Wybrano trening tylko na tym komputerze: przejście tam to zakończy.</translation></message>
<message><source>You found it.</source><translation>Znalezione.</translation></message>
<message><source>You gave</source><translation>Oddano</translation></message>
<message><source>You get it once you have accepted its licence on Hugging Face. Waggle shows how.</source><translation>Dostaniesz go, gdy przyjmiesz jego licencję na Hugging Face. Waggle pokaże jak.</translation></message>
<message><source>You know this swarm.</source><translation>Znasz ten rój.</translation></message>
<message numerus="yes"><source>You learned from %n answers</source><translation><numerusform>Nauka z %n odpowiedzi</numerusform><numerusform>Nauka z %n odpowiedzi</numerusform><numerusform>Nauka z %n odpowiedzi</numerusform></translation></message>
<message numerus="yes"><source>You learned from %n right answers</source><translation><numerusform>Nauka z %n poprawnej odpowiedzi</numerusform><numerusform>Nauka z %n poprawnych odpowiedzi</numerusform><numerusform>Nauka z %n poprawnych odpowiedzi</numerusform></translation></message>
<message><source>You muted it: nothing is learned from it, but it still gets your examples.</source><translation>Wyciszono: niczego się od niego nie uczysz, ale on nadal otrzymuje Twoje przykłady.</translation></message>
<message><source>You reach others; no address is known at which they could reach this computer.</source><translation>Łączysz się z innymi; nie znamy adresu, pod którym mogliby połączyć się z tym komputerem.</translation></message>
<message><source>You see what the swarm is; nothing is joined until you say so.</source><translation>Zobaczysz, co to za rój; nic nie dołączy, dopóki tego nie potwierdzisz.</translation></message>
<message><source>You see whose identity it is before anything changes. The identity of now is kept beside it, never overwritten.</source><translation>Zanim cokolwiek się zmieni, zobaczysz, czyja to tożsamość. Obecna zostanie zachowana obok i nigdy nie będzie nadpisana.</translation></message>
<message><source>You share</source><translation>Udostępniasz</translation></message>
<message><source>You shared an answer to this question already.</source><translation>Odpowiedź na to pytanie została już przez Ciebie udostępniona.</translation></message>
<message><source>You take part. Your model's first answers are marked after its next round, those of others as they come.</source><translation>Bierzesz udział. Pierwsze odpowiedzi Twojego modelu będą ocenione po jego następnej rundzie, a odpowiedzi innych, gdy nadejdą.</translation></message>
<message><source>You train alone</source><translation>Trenujesz w pojedynkę</translation></message>
<message><source>You train alone: nobody answers. The others may be off, or a firewall is in the way.</source><translation>Trenujesz w pojedynkę: nikt nie odpowiada. Inni mogą być wyłączeni albo przeszkadza zapora.</translation></message>
<message><source>You train alone; invite someone to learn together.</source><translation>Trenujesz w pojedynkę; zaproś kogoś, by uczyć się razem.</translation></message>
<message numerus="yes"><source>You trained on %n days</source><translation><numerusform>Trening w %n dniu</numerusform><numerusform>Trening w %n dniach</numerusform><numerusform>Trening w %n dniach</numerusform></translation></message>
<message><source>You used</source><translation>Wykorzystano</translation></message>
<message><source>You went back to an earlier round. </source><translation>Oglądasz wcześniejszą rundę. </translation></message>
<message><source>You will share</source><translation>Udostępnisz</translation></message>
<message><source>You're the only one here. Invite someone.</source><translation>Jesteś tu jedyną osobą. Zaproś kogoś.</translation></message>
<message><source>You, as the swarm sees you</source><translation>Ty oczami roju</translation></message>
<message><source>You: %1</source><translation>Ty: %1</translation></message>
<message><source>You: %1 on average, %2 in this round</source><translation>Ty: średnio %1, w tej rundzie %2</translation></message>
<message numerus="yes"><source>Your %n rounds of training can continue from their own saved weights, or you start over with the new version.</source><translation><numerusform>%n rundę Twojego treningu można kontynuować od jej zapisanych wag albo zacząć od nowa z nową wersją.</numerusform><numerusform>%n rundy Twojego treningu można kontynuować od ich zapisanych wag albo zacząć od nowa z nową wersją.</numerusform><numerusform>%n rund Twojego treningu można kontynuować od ich zapisanych wag albo zacząć od nowa z nową wersją.</numerusform></translation></message>
<message numerus="yes"><source>Your %n rounds of training cannot continue with the new version. Start over, or put the old files back.</source><translation><numerusform>%n runda Twojego treningu nie może być kontynuowana z nową wersją. Zacznij od nowa albo przywróć stare pliki.</numerusform><numerusform>%n rundy Twojego treningu nie mogą być kontynuowane z nową wersją. Zacznij od nowa albo przywróć stare pliki.</numerusform><numerusform>%n rund Twojego treningu nie może być kontynuowanych z nową wersją. Zacznij od nowa albo przywróć stare pliki.</numerusform></translation></message>
<message><source>Your Hugging Face token may not write to %1.</source><translation>Twój token Hugging Face nie może zapisywać w %1.</translation></message>
<message><source>Your NVIDIA graphics card</source><translation>Twoja karta graficzna NVIDIA</translation></message>
<message><source>Your answer</source><translation>Twoja odpowiedź</translation></message>
<message><source>Your answer first, if you like</source><translation>Najpierw Twoja odpowiedź, jeśli chcesz</translation></message>
<message><source>Your answer first, if you like. It stays on this computer.</source><translation>Jeśli chcesz, najpierw Twoja odpowiedź. Zostanie na tym komputerze.</translation></message>
<message><source>Your answer goes to the swarm, labelled as human. Your own model does not learn from it.</source><translation>Twoja odpowiedź trafi do roju oznaczona jako ludzka. Twój własny model się z niej nie uczy.</translation></message>
<message><source>Your answer is shared when you ask the model: everybody can read it, labelled as human.</source><translation>Twoja odpowiedź zostanie udostępniona, gdy zapytasz model: każdy może ją przeczytać, oznaczoną jako ludzka.</translation></message>
<message><source>Your answer was not shared: it is too long, or has characters that do not travel.</source><translation>Twojej odpowiedzi nie udostępniono: jest za długa albo zawiera znaki, których nie można przesłać.</translation></message>
<message><source>Your answers on Try it may teach other models. Everybody in the swarm can read them, labelled as human.</source><translation>Twoje odpowiedzi z „Wypróbuj” mogą uczyć inne modele. Każdy w roju może je czytać, z oznaczeniem, że są od człowieka.</translation></message>
<message><source>Your computer stopped the training, probably because memory ran short.</source><translation>Twój komputer zatrzymał trening, prawdopodobnie z braku pamięci.</translation></message>
<message><source>Your days as a table, newest first</source><translation>Twoje dni w tabeli, od najnowszego</translation></message>
<message><source>Your disk is slow to answer right now.</source><translation>Twój dysk odpowiada teraz powoli.</translation></message>
<message><source>Your engine runs on %1, which cannot see folders of this computer.</source><translation>Twój silnik działa na %1 i nie widzi folderów tego komputera.</translation></message>
<message><source>Your engine runs on %1. There, `waggle swarm create --questions FILE` makes a swarm from a file.</source><translation>Twój silnik działa na %1. Tam `waggle swarm create --questions FILE` tworzy rój z pliku.</translation></message>
<message><source>Your files</source><translation>Twoje pliki</translation></message>
<message><source>Your files, your real name, the model itself, and what you write to it in a chat.</source><translation>Twoje pliki, Twoje prawdziwe nazwisko, sam model i to, co piszesz do niego w rozmowie.</translation></message>
<message><source>Your key is chosen too: without a backup nobody can be you again.</source><translation>Wybrano też Twój klucz: bez kopii zapasowej nikt już nie będzie mógł być Tobą.</translation></message>
<message><source>Your key. Without it, or a backup of it, nobody can be you again.</source><translation>Twój klucz. Bez niego lub jego kopii zapasowej nikt już nie będzie mógł być Tobą.</translation></message>
<message><source>Your message</source><translation>Twoja wiadomość</translation></message>
<message><source>Your messages are not saved or shared.</source><translation>Twoje wiadomości nie są zapisywane ani udostępniane.</translation></message>
<message><source>Your model answers a short exam every ten minutes at most, and others see and grade its answers.</source><translation>Twój model najwyżej co dziesięć minut zdaje krótki egzamin, a inni widzą i oceniają jego odpowiedzi.</translation></message>
<message><source>Your model answers five of them now; a large one takes minutes. You need not wait.</source><translation>Twój model odpowiada teraz na pięć z nich; duży potrzebuje kilku minut. Nie musisz czekać.</translation></message>
<message><source>Your model answers small puzzles, eight ways each; Waggle checks which are right.</source><translation>Twój model odpowiada na małe zagadki, na każdą ośmioma sposobami; Waggle sprawdza, co jest poprawne.</translation></message>
<message><source>Your model answers some questions, then learns from the answers.</source><translation>Twój model odpowiada na kilka pytań, a potem uczy się z odpowiedzi.</translation></message>
<message><source>Your model did not try them.</source><translation>Twój model ich nie próbował.</translation></message>
<message><source>Your model is %1</source><translation>Twój model: %1</translation></message>
<message><source>Your model is %1, on this computer only.</source><translation>Twój model: %1, tylko na tym komputerze.</translation></message>
<message><source>Your model is %1, with %2.</source><translation>Twój model: %1 (%2).</translation></message>
<message><source>Your model is getting ready.</source><translation>Twój model się przygotowuje.</translation></message>
<message><source>Your model is in its first round.</source><translation>Twój model jest w pierwszej rundzie.</translation></message>
<message><source>Your model is not available right now.</source><translation>Twój model jest teraz niedostępny.</translation></message>
<message><source>Your model is not open now, so it did not try them.</source><translation>Twój model nie jest teraz otwarty, więc ich nie próbował.</translation></message>
<message><source>Your model is ready, and trains.</source><translation>Twój model jest gotowy i trenuje.</translation></message>
<message><source>Your model is safe.</source><translation>Twój model jest bezpieczny.</translation></message>
<message><source>Your model is taking its first test.</source><translation>Twój model przechodzi pierwszy test.</translation></message>
<message><source>Your model learned from %1 and %2.</source><translation>Twój model uczył się z %1 i %2.</translation></message>
<message><source>Your model learned from %1.</source><translation>Twój model uczył się z %1.</translation></message>
<message><source>Your model learns from how they differ. More of them take longer.</source><translation>Twój model uczy się z różnic między nimi. Większa liczba trwa dłużej.</translation></message>
<message><source>Your model learns from this round next.</source><translation>Następnie Twój model nauczy się z tej rundy.</translation></message>
<message><source>Your model learns from this round when training resumes.</source><translation>Twój model nauczy się z tej rundy, gdy trening znów ruszy.</translation></message>
<message><source>Your model reads %1 tokens at a time, a question and its answer together; %2 of %3 questions are longer.</source><translation>Twój model czyta naraz do %1 tokenów, pytanie i odpowiedź razem; dłuższe pytania: %2 z %3.</translation></message>
<message><source>Your model solved its first question: %1</source><translation>Twój model rozwiązał pierwsze pytanie: %1</translation></message>
<message><source>Your model solves %1 new questions.</source><translation>Nowe pytania, które rozwiązuje Twój model: %1.</translation></message>
<message><source>Your model solves %1 questions of a short test.</source><translation>Pytania krótkiego testu, które rozwiązuje Twój model: %1.</translation></message>
<message><source>Your model trains alone, on questions of %1, until you choose your swarm.</source><translation>Twój model trenuje w pojedynkę na pytaniach z %1, dopóki nie wybierzesz roju.</translation></message>
<message><source>Your model trains on its own. Name the gateway of a member in Settings.</source><translation>Twój model trenuje sam. Podaj w ustawieniach bramę jednego z członków.</translation></message>
<message><source>Your model trains on this computer only, by your choice.</source><translation>Twój model trenuje tylko na tym komputerze, zgodnie z Twoim wyborem.</translation></message>
<message><source>Your model's answers</source><translation>Odpowiedzi Twojego modelu</translation></message>
<message><source>Your model's answers as plain text, a made-up name and a public key, your network address (visible to peers), and answers of your own where you choose to share them.</source><translation>Odpowiedzi twojego modelu jako zwykły tekst, wymyślone imię i klucz publiczny, twój adres sieciowy (widoczny dla peerów) oraz własne odpowiedzi, jeśli zechcesz je udostępnić.</translation></message>
<message><source>Your model's answers to an exam</source><translation>Odpowiedzi Twojego modelu na egzamin</translation></message>
<message><source>Your model's answers, and yours, labelled as human</source><translation>Odpowiedzi Twojego modelu i Twoje, oznaczone jako ludzkie</translation></message>
<message><source>Your model's answers, as plain text</source><translation>Odpowiedzi Twojego modelu, jako zwykły tekst</translation></message>
<message><source>Your model, its progress and your name stay.</source><translation>Twój model, jego postępy i Twoja nazwa zostają.</translation></message>
<message><source>Your model, round %1</source><translation>Twój model, runda %1</translation></message>
<message><source>Your name and picture are made from a private key. Back it up to keep them on another computer.</source><translation>Twoja nazwa i obrazek powstają z klucza prywatnego. Zrób jego kopię, aby zachować je na innym komputerze.</translation></message>
<message><source>Your name in this swarm (optional)</source><translation>Twoja nazwa w tym roju (opcjonalnie)</translation></message>
<message><source>Your network</source><translation>Twoja sieć</translation></message>
<message><source>Your network address, to peers you meet</source><translation>Twój adres sieciowy, dla napotkanych peerów</translation></message>
<message><source>Your own</source><translation>Własne</translation></message>
<message><source>Your own answer</source><translation>Twoja własna odpowiedź</translation></message>
<message><source>Your own answer, shared and labelled as human. Your model does not learn from it.</source><translation>Twoja własna odpowiedź, udostępniona i oznaczona jako ludzka. Twój model się z niej nie uczy.</translation></message>
<message><source>Your own answers</source><translation>Twoje własne odpowiedzi</translation></message>
<message><source>Your own model is not affected.</source><translation>Twój własny model jest nietknięty.</translation></message>
<message><source>Your real name and e-mail address</source><translation>Twoje prawdziwe nazwisko i adres e-mail</translation></message>
<message><source>Your rules</source><translation>Twoje reguły</translation></message>
<message><source>Your rules wait until %1.</source><translation>Twoje reguły każą czekać do %1.</translation></message>
<message><source>Your settings of before are in %1; all is set as it ships.</source><translation>Twoje poprzednie ustawienia są w %1; wszystko ma teraz wartości fabryczne.</translation></message>
<message><source>Your week has no hour for it.</source><translation>W Twoim tygodniu nie ma na to godziny.</translation></message>
<message><source>Your week leaves this hour out.</source><translation>Twój tydzień pomija tę godzinę.</translation></message>
<message><source>Your week says so.</source><translation>Tak wynika z Twojego tygodnia.</translation></message>
<message><source>`waggle engine` converts it.</source><translation>Przekonwertuje go `waggle engine`.</translation></message>
<message><source>`waggle engine` downloads it.</source><translation>Pobierze go `waggle engine`.</translation></message>
<message><source>`waggle history` prints a table without it.</source><translation>`waggle history` wypisuje tabelę bez niego.</translation></message>
<message><source>`waggle repeat --write FILE` writes one.</source><translation>Zapisze go `waggle repeat --write FILE`.</translation></message>
<message><source>a PDF</source><translation>plik PDF</translation></message>
<message><source>a Parquet file</source><translation>plik Parquet</translation></message>
<message><source>a level that the swarm does not have</source><translation>poziom, którego rój nie ma</translation></message>
<message><source>a link leads out of Waggle's folder</source><translation>link prowadzi poza folder Waggle</translation></message>
<message><source>a message has an unknown role</source><translation>wiadomość ma nieznaną rolę</translation></message>
<message><source>a message has no %1 that is a text</source><translation>w wiadomości nie ma tekstu w polu %1</translation></message>
<message><source>a part of its path is no folder</source><translation>część ścieżki nie jest folderem</translation></message>
<message><source>a peer</source><translation>peera</translation></message>
<message><source>a peer was right first</source><translation>peer był pierwszy</translation></message>
<message><source>a peer's example, coming in</source><translation>przykład od peera, nadchodzi</translation></message>
<message><source>a question twice</source><translation>pytanie powtórzone</translation></message>
<message><source>a spreadsheet or an archive</source><translation>arkusz kalkulacyjny lub archiwum</translation></message>
<message><source>a text can end its process</source><translation>tekst może zakończyć jego proces</translation></message>
<message><source>a text of %1 characters can keep its scorer busy for more than %2 seconds</source><translation>tekst o długości %1 znaków może zająć jego moduł oceny na ponad %2 s</translation></message>
<message><source>about %1 h</source><translation>około %1 h</translation></message>
<message><source>about %1 min</source><translation>około %1 min</translation></message>
<message><source>after learning from another</source><translation>po nauce od innego</translation></message>
<message><source>alone</source><translation>samodzielnie</translation></message>
<message><source>an Intel GPU was found</source><translation>wykryto kartę graficzną Intel</translation></message>
<message><source>an NVIDIA graphics card was found; CUDA, which computes on it, can be downloaded</source><translation>wykryto kartę graficzną NVIDIA; można pobrać CUDA, która na niej liczy</translation></message>
<message numerus="yes"><source>and %n more</source><translation><numerusform>i jeszcze %n</numerusform><numerusform>i jeszcze %n</numerusform><numerusform>i jeszcze %n</numerusform></translation></message>
<message><source>announcement of the wrong size</source><translation>ogłoszenie o złym rozmiarze</translation></message>
<message><source>another Waggle</source><translation>inny Waggle</translation></message>
<message><source>another charter</source><translation>inna karta roju</translation></message>
<message><source>another origin</source><translation>inny nadawca</translation></message>
<message><source>another program has the port now</source><translation>inny program zajął port</translation></message>
<message><source>another program listens there</source><translation>nasłuchuje tam inny program</translation></message>
<message><source>another program uses it</source><translation>używa go inny program</translation></message>
<message><source>another protocol</source><translation>inny protokół</translation></message>
<message><source>another swarm's announcement</source><translation>ogłoszenie innego roju</translation></message>
<message><source>answer sheet of the wrong size</source><translation>arkusz odpowiedzi o złym rozmiarze</translation></message>
<message><source>answering</source><translation>odpowiada</translation></message>
<message><source>answers not verified</source><translation>odpowiedzi niesprawdzone</translation></message>
<message><source>answers to other questions</source><translation>odpowiedzi na inne pytania</translation></message>
<message><source>answers tried</source><translation>wypróbowane odpowiedzi</translation></message>
<message><source>as a chat</source><translation>w rozmowie</translation></message>
<message><source>as a chat with a worked example</source><translation>w rozmowie z rozwiązanym przykładem</translation></message>
<message><source>as a chat with a worked example and the answer tag opened</source><translation>w rozmowie z rozwiązanym przykładem i otwartym znacznikiem odpowiedzi</translation></message>
<message><source>as a trend</source><translation>jako trend</translation></message>
<message><source>as a trend, stopped after round %1</source><translation>jako trend, przerwany po rundzie %1</translation></message>
<message><source>as a trend; the result is from new questions</source><translation>jako trend; wynik z nowych pytań</translation></message>
<message><source>as much as its readable answers need</source><translation>tyle, ile wymagają jego czytelne odpowiedzi</translation></message>
<message><source>as usual for this kind of model</source><translation>jak zwykle przy takim modelu</translation></message>
<message><source>as you chose</source><translation>zgodnie z Twoim wyborem</translation></message>
<message><source>as you set it</source><translation>zgodnie z Twoim ustawieniem</translation></message>
<message><source>automatic: model, swarm, settings</source><translation>automatycznie: model, rój, ustawienia</translation></message>
<message><source>blocked</source><translation>zablokowany</translation></message>
<message><source>broken text</source><translation>uszkodzony tekst</translation></message>
<message><source>by %1</source><translation>od %1</translation></message>
<message><source>by your model</source><translation>od Twojego modelu</translation></message>
<message><source>cannot be judged</source><translation>nie do oceny</translation></message>
<message><source>cannot be written</source><translation>nie da się zapisać</translation></message>
<message><source>chosen in the settings</source><translation>wybrane w ustawieniach</translation></message>
<message><source>close</source><translation>blisko</translation></message>
<message><source>closing</source><translation>zamyka się</translation></message>
<message><source>completion too long</source><translation>za długa odpowiedź</translation></message>
<message><source>compressed</source><translation>skompresowane</translation></message>
<message><source>could not be judged</source><translation>nie udało się ocenić</translation></message>
<message><source>cut off</source><translation>ucięte</translation></message>
<message><source>damaged: %1</source><translation>uszkodzone: %1</translation></message>
<message><source>dashed: a relay</source><translation>przerywane: przekaźnik</translation></message>
<message><source>does not name one swarm</source><translation>nie wskazuje jednego roju</translation></message>
<message><source>done</source><translation>gotowe</translation></message>
<message><source>easy</source><translation>łatwe</translation></message>
<message><source>empty answer</source><translation>pusta odpowiedź</translation></message>
<message numerus="yes"><source>examples</source><translation><numerusform>przykład</numerusform><numerusform>przykłady</numerusform><numerusform>przykładów</numerusform></translation></message>
<message numerus="yes"><source>examples fetched %n times</source><translation><numerusform>przykłady pobrane raz</numerusform><numerusform>przykłady pobrane %n razy</numerusform><numerusform>przykłady pobrane %n razy</numerusform></translation></message>
<message><source>filled in after the next test</source><translation>uzupełni się po następnym teście</translation></message>
<message><source>filled in after this test</source><translation>uzupełni się po tym teście</translation></message>
<message><source>first right answer, by itself</source><translation>pierwsza poprawna odpowiedź, samodzielnie</translation></message>
<message><source>for another place or time</source><translation>dla innego miejsca lub czasu</translation></message>
<message><source>for example /home/anna/runs</source><translation>na przykład /home/anna/runs</translation></message>
<message><source>for example Fractions, Logic</source><translation>na przykład Fractions, Logic</translation></message>
<message><source>for example blender, steam</source><translation>na przykład blender, steam</translation></message>
<message><source>forged announcement</source><translation>podrobione ogłoszenie</translation></message>
<message><source>forged answer sheet</source><translation>podrobiony arkusz odpowiedzi</translation></message>
<message><source>forged statement of presence</source><translation>podrobione oświadczenie o obecności</translation></message>
<message><source>found by itself</source><translation>bez pomocy</translation></message>
<message><source>from the future</source><translation>z przyszłości</translation></message>
<message><source>gathering</source><translation>zbiera</translation></message>
<message><source>getting ready</source><translation>przygotowuje się</translation></message>
<message><source>graded as: %1</source><translation>oceniane jako: %1</translation></message>
<message><source>greeting of the wrong size</source><translation>powitanie o złym rozmiarze</translation></message>
<message><source>hard</source><translation>trudne</translation></message>
<message><source>has more than %1 fields</source><translation>ma ponad %1 pól</translation></message>
<message><source>has no words</source><translation>nie ma słów</translation></message>
<message><source>highest first</source><translation>od największych</translation></message>
<message><source>hivemind is not installed</source><translation>hivemind nie jest zainstalowany</translation></message>
<message><source>holds a damaged key</source><translation>zawiera uszkodzony klucz</translation></message>
<message><source>holds back</source><translation>hamuje</translation></message>
<message><source>holds characters that no address has</source><translation>zawiera znaki, których nie ma żaden adres</translation></message>
<message><source>holds characters that no link has</source><translation>zawiera znaki, których nie ma żaden link</translation></message>
<message><source>holds something that this version does not know</source><translation>zawiera coś, czego ta wersja nie zna</translation></message>
<message><source>how long a message to it and back takes</source><translation>ile trwa wiadomość tam i z powrotem</translation></message>
<message><source>how right its answers were, 0 to 1</source><translation>jak poprawne były jego odpowiedzi, od 0 do 1</translation></message>
<message><source>human</source><translation>człowiek</translation></message>
<message numerus="yes"><source>in %n rounds</source><translation><numerusform>w %n rundzie</numerusform><numerusform>w %n rundach</numerusform><numerusform>w %n rundach</numerusform></translation></message>
<message><source>in the first order</source><translation>w pierwotnej kolejności</translation></message>
<message><source>invalid hash of an answer sheet</source><translation>nieprawidłowy skrót arkusza odpowiedzi</translation></message>
<message><source>invalid model name</source><translation>nieprawidłowa nazwa modelu</translation></message>
<message><source>is an empty list</source><translation>jest pustą listą</translation></message>
<message><source>is damaged</source><translation>jest uszkodzone</translation></message>
<message><source>is left out</source><translation>pominięta</translation></message>
<message><source>is longer than %1 characters, too long for a choice</source><translation>ma więcej znaków niż %1, za dużo jak na opcję do wyboru</translation></message>
<message><source>is not a JSON object like {"name": "Ada", "born": 1815} with plain values</source><translation>nie jest obiektem JSON takim jak {"name": "Ada", "born": 1815} z prostymi wartościami</translation></message>
<message><source>is not a number like 1234.5, 1,234.5 or 1.2e6</source><translation>nie jest liczbą taką jak 1234.5, 1,234.5 lub 1.2e6</translation></message>
<message><source>is too long</source><translation>jest za długie</translation></message>
<message><source>it became shorter</source><translation>skrócił się</translation></message>
<message><source>it claims more fields or tensors than any model has</source><translation>podaje więcej pól lub tensorów, niż ma jakikolwiek model</translation></message>
<message><source>it claims more layers than it has tensors</source><translation>podaje więcej warstw, niż ma tensorów</translation></message>
<message><source>it contains the byte 0</source><translation>zawiera bajt 0</translation></message>
<message><source>it does not have the %1 questions that the charter names</source><translation>nie ma %1 pytań, które podaje karta roju</translation></message>
<message><source>it does not pay its own true answer in full</source><translation>nie przyznaje pełnej nagrody własnej poprawnej odpowiedzi</translation></message>
<message><source>it ended with code %1</source><translation>zakończył się kodem %1</translation></message>
<message><source>it ended with signal %1</source><translation>zakończył go sygnał %1</translation></message>
<message><source>it has %1 cells, and the first line %2</source><translation>liczba komórek: %1, w pierwszym wierszu: %2</translation></message>
<message><source>it has %1 columns, more than %2</source><translation>liczba kolumn: %1, dozwolone najwyżej: %2</translation></message>
<message><source>it has a damaged vocabulary</source><translation>ma uszkodzony słownik</translation></message>
<message><source>it has a header that is too large</source><translation>ma za duży nagłówek</translation></message>
<message><source>it has a special token that is no token</source><translation>ma token specjalny, który nie jest tokenem</translation></message>
<message><source>it has a tensor %1 of a shape that does not fit the others</source><translation>ma tensor %1 o kształcie, który nie pasuje do pozostałych</translation></message>
<message><source>it has a tensor %1, which transformers does not read</source><translation>ma tensor %1, którego transformers nie odczytuje</translation></message>
<message><source>it has a tokenizer of type %1, which Waggle does not convert</source><translation>ma tokenizer typu %1, którego Waggle nie konwertuje</translation></message>
<message><source>it has both a %1 and a %2</source><translation>ma zarówno %1, jak i %2</translation></message>
<message><source>it has damaged merges</source><translation>ma uszkodzoną listę scaleń (merges)</translation></message>
<message><source>it has no %1 of a tokenizer</source><translation>brakuje pola %1 tokenizera</translation></message>
<message><source>it has no tensor for %1</source><translation>brakuje tensora dla %1</translation></message>
<message><source>it has no vocabulary</source><translation>nie ma słownika</translation></message>
<message><source>it has tensors of precision %1, which Waggle does not know</source><translation>ma tensory o precyzji %1, której Waggle nie zna</translation></message>
<message><source>it has tensors that overlap</source><translation>ma tensory, które na siebie nachodzą</translation></message>
<message><source>it has the setting %1, which transformers would pass over</source><translation>ma ustawienie %1, które transformers by pominęło</translation></message>
<message><source>it holds a model of type %1, and Waggle converts %2</source><translation>zawiera model typu %1, a Waggle konwertuje %2</translation></message>
<message><source>it is a folder, not a file</source><translation>to folder, a nie plik</translation></message>
<message><source>it is a link to %1, which is not there</source><translation>to dowiązanie do %1, którego tam nie ma</translation></message>
<message><source>it is a part of a model that is split into several files</source><translation>to część modelu podzielonego na kilka plików</translation></message>
<message><source>it is damaged, or no GGUF file</source><translation>jest uszkodzony albo nie jest plikiem GGUF</translation></message>
<message><source>it is incomplete</source><translation>jest niekompletny</translation></message>
<message><source>it is longer than %1 MiB</source><translation>ma ponad %1 MiB</translation></message>
<message><source>it is not compressed as agreed</source><translation>nie jest skompresowany zgodnie z umową</translation></message>
<message><source>it is of version %1 of GGUF, and Waggle reads versions 2 and 3</source><translation>ma wersję %1 formatu GGUF, a Waggle czyta wersje 2 i 3</translation></message>
<message><source>it needs the grader %1</source><translation>wymaga oceniającego %1</translation></message>
<message><source>it pays in full what is no answer (%1)</source><translation>przyznaje pełną nagrodę za coś, co nie jest odpowiedzią (%1)</translation></message>
<message><source>it says more than %1 characters</source><translation>zwraca więcej znaków niż %1</translation></message>
<message><source>it scales its positions in a way that Waggle does not know</source><translation>skaluje pozycje w sposób, którego Waggle nie zna</translation></message>
<message><source>it splits texts in a way that Waggle does not know (%1)</source><translation>dzieli teksty w sposób, którego Waggle nie zna (%1)</translation></message>
<message><source>it takes too much memory to read</source><translation>odczyt zajmuje za dużo pamięci</translation></message>
<message><source>it talks nonsense: %1</source><translation>odpowiada bez sensu: %1</translation></message>
<message><source>it took more than %1 GiB</source><translation>zużycie pamięci ponad %1 GiB</translation></message>
<message><source>it would have to move to another disk</source><translation>trzeba by przenieść na inny dysk</translation></message>
<message><source>its disk cannot do that</source><translation>dysk na to nie pozwala</translation></message>
<message><source>its disk is for reading only</source><translation>dysk jest tylko do odczytu</translation></message>
<message><source>its disk is gone</source><translation>dysku już nie ma</translation></message>
<message><source>its examples that your model learned from, of all that arrived</source><translation>jego przykłady, z których uczył się Twój model, ze wszystkich, które dotarły</translation></message>
<message><source>its head has %1 outputs</source><translation>liczba wyjść głowicy: %1</translation></message>
<message><source>its links lead in a circle</source><translation>dowiązania tworzą pętlę</translation></message>
<message><source>its name is too long</source><translation>nazwa jest za długa</translation></message>
<message><source>its questions are not the same in another process or on another day</source><translation>pytania są inne w innym procesie lub innego dnia</translation></message>
<message><source>its questions are not the same when they are made again</source><translation>pytania są inne, gdy tworzy się je ponownie</translation></message>
<message><source>its questions cannot be made where answers are judged (%1)</source><translation>pytań nie da się utworzyć tam, gdzie oceniane są odpowiedzi (%1)</translation></message>
<message><source>its scorer does what nothing here may do (%1)</source><translation>ocena robi coś, czego tu robić nie wolno (%1)</translation></message>
<message><source>its scorer imports modules while it judges</source><translation>ocena w trakcie działania importuje moduły</translation></message>
<message><source>its scorer is quick only up to %1 characters, and this charter allows %2</source><translation>ocena jest szybka tylko przy najwyżej %1 znakach, a ta karta roju dopuszcza %2</translation></message>
<message><source>its scorer opens files while it judges</source><translation>ocena w trakcie działania otwiera pliki</translation></message>
<message><source>its scorer runs text as code</source><translation>ocena uruchamia tekst jako kod</translation></message>
<message><source>its scores are not always numbers</source><translation>wyniki nie zawsze są liczbami</translation></message>
<message><source>its scores are not the same in another process or on another day</source><translation>wyniki są inne w innym procesie lub innego dnia</translation></message>
<message><source>its scores are not the same when it is asked again</source><translation>wyniki są inne przy ponownej ocenie</translation></message>
<message><source>its scores leave the range from 0 to 1</source><translation>wyniki wychodzą poza zakres od 0 do 1</translation></message>
<message><source>its size is not allowed</source><translation>jego rozmiar jest niedozwolony</translation></message>
<message><source>judging</source><translation>ocenia</translation></message>
<message><source>learned from copy %1</source><translation>nauczone od kopii %1</translation></message>
<message><source>learning</source><translation>uczy się</translation></message>
<message><source>learning.local and learning.external cannot both be 0.</source><translation>learning.local i learning.external nie mogą jednocześnie wynosić 0.</translation></message>
<message><source>learning.local is %1, but only %2 questions are drawn.</source><translation>learning.local wynosi %1, a liczba losowanych pytań to tylko %2.</translation></message>
<message><source>learning.specialties may name %1.</source><translation>learning.specialties może zawierać %1.</translation></message>
<message><source>less likely</source><translation>mniej prawdopodobne</translation></message>
<message><source>less than a minute</source><translation>mniej niż minuta</translation></message>
<message><source>line %1 is malformed</source><translation>wiersz %1 jest nieprawidłowy</translation></message>
<message><source>line %1 is out of order, or a question again</source><translation>wiersz %1 jest nie po kolei albo powtarza pytanie</translation></message>
<message><source>line %1: %2</source><translation>wiersz %1: %2</translation></message>
<message><source>lists</source><translation>listy</translation></message>
<message><source>lowest first</source><translation>od najmniejszych</translation></message>
<message><source>making one of its questions takes %1 seconds</source><translation>utworzenie jednego pytania trwa (w sekundach): %1</translation></message>
<message><source>malformed</source><translation>nieczytelny zapis</translation></message>
<message><source>malformed announcement</source><translation>nieczytelne ogłoszenie</translation></message>
<message><source>malformed answer sheet</source><translation>nieczytelny arkusz odpowiedzi</translation></message>
<message><source>malformed compression</source><translation>nieczytelna kompresja</translation></message>
<message><source>malformed greeting</source><translation>nieczytelne powitanie</translation></message>
<message><source>margin of error</source><translation>margines błędu</translation></message>
<message><source>may be used</source><translation>dozwolona</translation></message>
<message><source>met</source><translation>spełniona</translation></message>
<message><source>mlx-lm does not know the activation %1 in models of type %2.</source><translation>mlx-lm nie zna aktywacji %1 w modelach typu %2.</translation></message>
<message><source>mlx-lm does not know this order of layers.</source><translation>mlx-lm nie zna takiej kolejności warstw.</translation></message>
<message><source>mlx-lm passes over %1 in models of type %2.</source><translation>mlx-lm pomija %1 w modelach typu %2.</translation></message>
<message><source>model.folder and model.name are both set.</source><translation>Ustawiono jednocześnie model.folder i model.name.</translation></message>
<message><source>more likely next time</source><translation>następnym razem bardziej prawdopodobne</translation></message>
<message><source>names a gateway by something that is no address, one twice, or more than %1</source><translation>podaje bramę bez prawidłowego adresu, jedną dwa razy lub więcej niż %1</translation></message>
<message><source>names a seed by something that is no address</source><translation>podaje węzeł startowy bez prawidłowego adresu</translation></message>
<message><source>names no seed, one seed twice, or more than %1</source><translation>nie podaje węzła startowego, podaje jeden dwa razy lub więcej niż %1</translation></message>
<message><source>no answer</source><translation>brak odpowiedzi</translation></message>
<message><source>no answer tag</source><translation>brak znacznika</translation></message>
<message><source>no answer within %1 s of work</source><translation>brak odpowiedzi po %1 s pracy</translation></message>
<message><source>no answer within %1 s, of which it worked for %2 s</source><translation>brak odpowiedzi po %1 s, w tym %2 s pracy</translation></message>
<message><source>no column is named answer</source><translation>żadna kolumna nie nazywa się answer</translation></message>
<message><source>no column is named question or prompt</source><translation>żadna kolumna nie nazywa się question ani prompt</translation></message>
<message><source>no member of this private swarm</source><translation>nie jest członkiem tego prywatnego roju</translation></message>
<message><source>no members seen yet</source><translation>jeszcze nikogo nie widziano</translation></message>
<message><source>no message is the user's</source><translation>żadna wiadomość nie pochodzi od użytkownika</translation></message>
<message><source>no supported GPU was found, which is normal</source><translation>nie znaleziono obsługiwanej karty graficznej, co jest normalne</translation></message>
<message><source>no swarm</source><translation>bez roju</translation></message>
<message><source>nobody here has that name</source><translation>nikt tutaj tak się nie nazywa</translation></message>
<message><source>none</source><translation>brak</translation></message>
<message><source>not downloaded yet</source><translation>jeszcze nie pobrany</translation></message>
<message><source>not finished</source><translation>nie ukończono</translation></message>
<message><source>not finite</source><translation>nieskończona</translation></message>
<message><source>not its key</source><translation>to nie jego klucz</translation></message>
<message><source>not solved yet</source><translation>jeszcze nie rozwiązano</translation></message>
<message><source>not tested yet</source><translation>jeszcze nie testowano</translation></message>
<message><source>not the answer sheet that was named</source><translation>nie ten arkusz odpowiedzi, który podano</translation></message>
<message><source>not the payload that was announced</source><translation>nie te dane, które ogłoszono</translation></message>
<message><source>not the round that was announced</source><translation>nie ta runda, którą ogłoszono</translation></message>
<message><source>not trained here yet</source><translation>jeszcze bez treningu</translation></message>
<message><source>not verified</source><translation>niesprawdzone</translation></message>
<message><source>nothing from peers</source><translation>nic od peerów</translation></message>
<message><source>nothing yet</source><translation>jeszcze nic</translation></message>
<message><source>now</source><translation>teraz</translation></message>
<message><source>numbers</source><translation>liczby</translation></message>
<message><source>of its answers in training</source><translation>z jego odpowiedzi w treningu</translation></message>
<message><source>of them right</source><translation>w tym dobrych</translation></message>
<message><source>off by at most</source><translation>dopuszczalna odchyłka</translation></message>
<message><source>on new questions</source><translation>na nowych pytaniach</translation></message>
<message><source>only %1 of its questions are not reserved, and %2 are needed</source><translation>tylko %1 jego pytań nie jest zarezerwowanych, a potrzeba %2</translation></message>
<message><source>own questions</source><translation>własne pytania</translation></message>
<message><source>pale: idle</source><translation>blada: bezczynny</translation></message>
<message numerus="yes"><source>peers</source><translation><numerusform>peer</numerusform><numerusform>peery</numerusform><numerusform>peerów</numerusform></translation></message>
<message numerus="yes"><source>peers took some</source><translation><numerusform>peer coś pobrał</numerusform><numerusform>peery coś pobrały</numerusform><numerusform>peerów coś pobrało</numerusform></translation></message>
<message><source>picking</source><translation>wybiera</translation></message>
<message><source>picking questions</source><translation>wybiera pytania</translation></message>
<message><source>quantised</source><translation>skwantyzowany</translation></message>
<message><source>question beyond the charter's limit</source><translation>pytanie poza limitem karty roju</translation></message>
<message><source>raised, because many answers were cut off</source><translation>zwiększono, bo wiele odpowiedzi zostało uciętych</translation></message>
<message><source>reasoning-gym has no file %1</source><translation>reasoning-gym nie ma pliku %1</translation></message>
<message><source>recently right</source><translation>dobrych ostatnio</translation></message>
<message><source>reserved question</source><translation>pytanie testowe</translation></message>
<message><source>right</source><translation>dobrze</translation></message>
<message><source>right answer</source><translation>dobra odpowiedź</translation></message>
<message><source>right on new questions</source><translation>dobrze w nowych pytaniach</translation></message>
<message><source>right when it stopped</source><translation>trafne przy zatrzymaniu</translation></message>
<message><source>right, but no answer tag</source><translation>dobrze, ale bez znacznika</translation></message>
<message><source>right, wrong format</source><translation>dobrze, zła forma</translation></message>
<message><source>round %1</source><translation>runda %1</translation></message>
<message><source>round %1, %2</source><translation>runda %1, %2</translation></message>
<message><source>round %1, %2 was right first</source><translation>runda %1, pierwszy dobrze: %2</translation></message>
<message><source>round %1, found by itself</source><translation>runda %1, znalezione samodzielnie</translation></message>
<message><source>runs %1, which is newer: update this Waggle to train with it</source><translation>ma %1, czyli nowszą wersję: zaktualizuj to Waggle, aby z nim trenować</translation></message>
<message><source>runs %1, which is older: it must be updated to train with this one</source><translation>ma %1, czyli starszą wersję: wymaga aktualizacji, aby trenować z tym Waggle</translation></message>
<message><source>saved as UTF-16</source><translation>zapisany jako UTF-16</translation></message>
<message><source>set by hand</source><translation>ustawione ręcznie</translation></message>
<message><source>several answers</source><translation>kilka odpowiedzi</translation></message>
<message><source>sharing</source><translation>dzieli się</translation></message>
<message><source>since %1</source><translation>od %1</translation></message>
<message><source>some of them take minutes</source><translation>niektóre z nich trwają minuty</translation></message>
<message><source>ssh is missing on this computer.</source><translation>Na tym komputerze brakuje ssh.</translation></message>
<message><source>standard</source><translation>standardowe</translation></message>
<message><source>stopped by you</source><translation>zatrzymane przez Ciebie</translation></message>
<message><source>stopped here</source><translation>zatrzymano tutaj</translation></message>
<message><source>stronger colour: more right; blue edge: learned from peers</source><translation>mocniejszy kolor: więcej dobrych; niebieski brzeg: nauka od innych</translation></message>
<message><source>swarm.charter in the settings, or on the command line, names the swarm.</source><translation>Rój wskazuje swarm.charter w Ustawieniach lub w wierszu poleceń.</translation></message>
<message><source>takes too long to judge</source><translation>ocena trwa zbyt długo</translation></message>
<message><source>taking a test</source><translation>przechodzi test</translation></message>
<message><source>the Intel GPU cannot be used: %1</source><translation>nie można użyć procesora graficznego Intel: %1</translation></message>
<message><source>the access list cannot be read</source><translation>nie można odczytać listy dostępu</translation></message>
<message><source>the answer</source><translation>odpowiedź</translation></message>
<message><source>the answer "%1" %2</source><translation>odpowiedź "%1": %2</translation></message>
<message><source>the answer contains %1 or %2, between which a model writes its own</source><translation>odpowiedź zawiera %1 lub %2, a między nimi model pisze własną</translation></message>
<message><source>the answer has lists or objects within</source><translation>odpowiedź zawiera listy lub obiekty</translation></message>
<message><source>the answer is not a text, a number, a list or an object</source><translation>odpowiedź nie jest tekstem, liczbą, listą ani obiektem</translation></message>
<message><source>the client has gone</source><translation>klient się rozłączył</translation></message>
<message><source>the connection failed</source><translation>połączenie się nie udało</translation></message>
<message><source>the disk is full</source><translation>dysk jest pełny</translation></message>
<message><source>the disk reports an error</source><translation>dysk zgłasza błąd</translation></message>
<message><source>the file is too large for its disk</source><translation>plik jest za duży na ten dysk</translation></message>
<message><source>the gateway is full</source><translation>brama jest pełna</translation></message>
<message><source>the header of %1 is too large</source><translation>nagłówek %1 jest za duży</translation></message>
<message><source>the lower, the better it fits what it learns from; may be below 0</source><translation>im niżej, tym lepiej pasuje do tego, z czego się uczy; może być poniżej 0</translation></message>
<message><source>the messages are not JSON</source><translation>wiadomości nie są w formacie JSON</translation></message>
<message><source>the newest %1 of %2</source><translation>najnowsze: %1 z %2</translation></message>
<message><source>the note of port and secret is damaged</source><translation>notatka z portem i sekretem jest uszkodzona</translation></message>
<message><source>the picture could not be written</source><translation>nie udało się zapisać obrazu</translation></message>
<message><source>the question</source><translation>pytanie</translation></message>
<message><source>the question is not a text</source><translation>pytanie nie jest tekstem</translation></message>
<message><source>the question of line %1 has another answer here</source><translation>pytanie z wiersza %1 ma tu inną odpowiedź</translation></message>
<message><source>the samples in the charter are no questions of it</source><translation>przykłady w karcie roju nie są pytaniami z niego</translation></message>
<message><source>the swarm</source><translation>rój</translation></message>
<message><source>the system allows no more processes or memory now</source><translation>system nie pozwala teraz na więcej procesów lub pamięci</translation></message>
<message><source>the user of this process has no identifier</source><translation>użytkownik tego procesu nie ma identyfikatora</translation></message>
<message><source>the user of this process is unknown</source><translation>użytkownik tego procesu jest nieznany</translation></message>
<message><source>there are more than %1 questions</source><translation>pytań jest więcej niż %1</translation></message>
<message><source>there is no %1; there are all, %2</source><translation>nie ma %1; jest all, %2</translation></message>
<message><source>there is no answer</source><translation>brak odpowiedzi</translation></message>
<message><source>there is no question</source><translation>brak pytania</translation></message>
<message><source>there is no such file or folder</source><translation>nie ma takiego pliku ani folderu</translation></message>
<message><source>there is something already</source><translation>coś tu już jest</translation></message>
<message><source>there is too little memory</source><translation>za mało pamięci</translation></message>
<message><source>they need %1 opened</source><translation>wymagają otwarcia: %1</translation></message>
<message><source>thick blue ring: a peer was right first</source><translation>gruba niebieska obwódka: ktoś inny był pierwszy</translation></message>
<message><source>this Mac's graphics processor was found</source><translation>znaleziono procesor graficzny tego Maca</translation></message>
<message><source>this Waggle has no such dataset</source><translation>ten Waggle nie ma takiego zbioru danych</translation></message>
<message><source>this cannot be used: %1</source><translation>nie można tego użyć: %1</translation></message>
<message><source>this computer has no such address</source><translation>ten komputer nie ma takiego adresu</translation></message>
<message><source>this is not JSON: %1</source><translation>to nie jest JSON: %1</translation></message>
<message><source>this is not a JSON object</source><translation>to nie jest obiekt JSON</translation></message>
<message><source>this is not a row of CSV: %1</source><translation>to nie jest wiersz CSV: %1</translation></message>
<message><source>this is not text in UTF-8</source><translation>to nie jest tekst w UTF-8</translation></message>
<message><source>this round</source><translation>ta runda</translation></message>
<message><source>this swarm</source><translation>ten rój</translation></message>
<message><source>this user has no home folder</source><translation>ten użytkownik nie ma folderu domowego</translation></message>
<message><source>this user may not do that there</source><translation>ten użytkownik nie może tego tam robić</translation></message>
<message><source>to %1</source><translation>do %1</translation></message>
<message><source>to come</source><translation>jeszcze przed nami</translation></message>
<message><source>to whoever asks</source><translation>do każdego, kto zapyta</translation></message>
<message><source>too large</source><translation>za duży</translation></message>
<message><source>too large unpacked</source><translation>po rozpakowaniu za duży</translation></message>
<message><source>too many clients of one address range</source><translation>za dużo klientów z jednego zakresu adresów</translation></message>
<message><source>too many files are open</source><translation>otwarto za dużo plików</translation></message>
<message><source>too many files like %1</source><translation>za dużo plików takich jak %1</translation></message>
<message><source>too many or too few completions</source><translation>za dużo lub za mało odpowiedzi</translation></message>
<message><source>too old</source><translation>za stare</translation></message>
<message><source>torch cannot use the device %1: %2.</source><translation>torch nie może użyć urządzenia %1: %2.</translation></message>
<message><source>torch finds no device %1 here.</source><translation>torch nie znajduje tu urządzenia %1.</translation></message>
<message><source>trains a small language model in %1</source><translation>trenuje mały model językowy w %1</translation></message>
<message><source>trains under another charter (%1): one of the two must join by the other's invite</source><translation>trenuje pod inną kartą roju (%1): jedno z dwojga musi dołączyć z zaproszenia drugiego</translation></message>
<message><source>transformers cannot read it (%1)</source><translation>transformers nie potrafi tego odczytać (%1)</translation></message>
<message><source>two columns have the same name</source><translation>dwie kolumny mają tę samą nazwę</translation></message>
<message><source>under way</source><translation>w toku</translation></message>
<message><source>unknown specialty</source><translation>nieznana specjalność</translation></message>
<message><source>unnamed</source><translation>bez nazwy</translation></message>
<message><source>until_round is %1.</source><translation>until_round to %1.</translation></message>
<message><source>waggle://join?…</source><translation>waggle://join?…</translation></message>
<message><source>weights in %1</source><translation>wagi w %1</translation></message>
<message><source>when.week has %1 days.</source><translation>Liczba dni w when.week: %1.</translation></message>
<message><source>with %1 peers</source><translation>peery: %1</translation></message>
<message><source>with a worked example</source><translation>z rozwiązanym przykładem</translation></message>
<message><source>with a worked example and the answer tag opened</source><translation>z rozwiązanym przykładem i otwartym znacznikiem odpowiedzi</translation></message>
<message><source>with peers</source><translation>z peerami</translation></message>
<message><source>with the question alone</source><translation>z samym pytaniem</translation></message>
<message><source>writing</source><translation>zapisuje</translation></message>
<message><source>written</source><translation>zapisano</translation></message>
<message><source>wrong</source><translation>źle</translation></message>
<message><source>wrong: %1</source><translation>źle: %1</translation></message>
<message numerus="yes"><source>you in the middle, %n peers around you</source><translation><numerusform>ty w środku, wokół Ciebie %n peer</numerusform><numerusform>ty w środku, wokół Ciebie %n peery</numerusform><numerusform>ty w środku, wokół Ciebie %n peerów</numerusform></translation></message>
<message><source>your example, going out</source><translation>twój przykład, wysyłany</translation></message>
<message><source>your examples that it fetched</source><translation>Twoje przykłady, które pobrał</translation></message>
<message><source>your guess</source><translation>Twój typ</translation></message>
<message><source>your share of the disk is used up</source><translation>twój przydział miejsca na dysku jest wyczerpany</translation></message>
</context>
</TS>
