<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de" sourcelanguage="en">
<context><name>Waggle</name>
<message><source> (answers of some not verified)</source><translation> (Lösungen mancher ungeprüft)</translation></message>
<message><source> (it has no other)</source><translation> (es hat keine andere)</translation></message>
<message><source> (the closest it has)</source><translation> (die nächstliegende)</translation></message>
<message><source> ago</source><translation>vor </translation></message>
<message numerus="yes"><source> and %n more</source><translation><numerusform> und %n weitere</numerusform><numerusform> und %n weitere</numerusform></translation></message>
<message numerus="yes"><source> and ignored %n misses.</source><translation><numerusform> und %n Fehlversuch übergangen.</numerusform><numerusform> und %n Fehlversuche übergangen.</numerusform></translation></message>
<message numerus="yes"><source> and shared with %n peers</source><translation><numerusform> und mit %n Peer geteilt</numerusform><numerusform> und mit %n Peers geteilt</numerusform></translation></message>
<message numerus="yes"><source> and took %n of yours.</source><translation><numerusform> und holte %n von dir.</numerusform><numerusform> und holte %n von dir.</numerusform></translation></message>
<message><source>%1 %2 %3 %4</source><translation>%1. %2 %3 %4</translation></message>
<message><source>%1 (you)</source><translation>%1 (du)</translation></message>
<message><source>%1 W for the graphics processor, at %2% of the time</source><translation>%1 W für den Grafikprozessor, in %2 % der Zeit</translation></message>
<message><source>%1 and %2</source><translation>%1 und %2</translation></message>
<message><source>%1 arrived damaged, twice.</source><translation>%1 kam beschädigt an, zweimal.</translation></message>
<message><source>%1 became shorter</source><translation>%1 wurde kürzer</translation></message>
<message><source>%1 begins anew: the answers to its questions are checked now.</source><translation>%1 beginnt neu: Die Antworten auf seine Fragen sind jetzt geprüft.</translation></message>
<message><source>%1 billion parameters</source><translation>%1 Mrd. Parameter</translation></message>
<message><source>%1 bits in groups of %2</source><translation>%1 Bits in Gruppen zu %2</translation></message>
<message><source>%1 broke a rule.</source><translation>%1 mit Regelverstoß.</translation></message>
<message><source>%1 cannot be %2.</source><translation>%1 kann nicht %2 sein.</translation></message>
<message><source>%1 cannot be converted now: %2.</source><translation>%1 kann jetzt nicht umgewandelt werden: %2.</translation></message>
<message><source>%1 cannot be joined now.</source><translation>Du kannst %1 jetzt nicht beitreten.</translation></message>
<message><source>%1 cannot be listened on: %2.</source><translation>Auf %1 lässt sich nicht lauschen: %2.</translation></message>
<message><source>%1 cannot be opened: %2.</source><translation>%1 lässt sich nicht öffnen: %2.</translation></message>
<message><source>%1 cannot be reached by ssh.</source><translation>%1 ist über ssh nicht zu erreichen.</translation></message>
<message><source>%1 cannot be read: %2.</source><translation>%1 lässt sich nicht lesen: %2.</translation></message>
<message><source>%1 cannot be removed: %2.</source><translation>%1 lässt sich nicht entfernen: %2.</translation></message>
<message><source>%1 cannot be used: %2</source><translation>%1 ist nicht nutzbar: %2</translation></message>
<message><source>%1 cannot be used: %2: %3.</source><translation>%1 ist nicht zu gebrauchen: %2: %3.</translation></message>
<message><source>%1 cannot be written to the disk: %2.</source><translation>%1 lässt sich nicht auf die Festplatte schreiben: %2.</translation></message>
<message><source>%1 cannot be written.</source><translation>%1 kann nicht geschrieben werden.</translation></message>
<message><source>%1 cannot be written: %2.</source><translation>%1 lässt sich nicht schreiben: %2.</translation></message>
<message><source>%1 chose a group twice, or one that does not exist.</source><translation>%1 wählte eine Gruppe zweimal oder eine, die es nicht gibt.</translation></message>
<message><source>%1 chose too many groups.</source><translation>%1 wählte zu viele Gruppen.</translation></message>
<message><source>%1 contains %2</source><translation>%1 enthält %2</translation></message>
<message><source>%1 contains %2, which nobody sees</source><translation>%1 enthält %2, was niemand sieht</translation></message>
<message><source>%1 days</source><translation>%1 Tage</translation></message>
<message><source>%1 did not return one float for each of %2 tokens.</source><translation>%1 gab nicht für jedes von %2 Token eine Zahl zurück.</translation></message>
<message><source>%1 does not say which questions its members agree on.</source><translation>%1 sagt nicht, auf welche Fragen sich seine Mitglieder geeinigt haben.</translation></message>
<message><source>%1 downloaded so far</source><translation>bisher %1 geladen</translation></message>
<message><source>%1 has %2 characters, more than %3</source><translation>%1 hat %2 Zeichen, mehr als %3</translation></message>
<message><source>%1 has %2 questions, more than %3.</source><translation>%1 hat %2 Fragen, mehr als %3.</translation></message>
<message><source>%1 has GGUF files only, of which Waggle downloads none.</source><translation>%1 hat nur GGUF-Dateien, von denen Waggle keine herunterlädt.</translation></message>
<message><source>%1 has a scale of its own</source><translation>%1 hat eine eigene Skalierung</translation></message>
<message><source>%1 has a tolerance, but the grader %2 uses none.</source><translation>%1 hat eine Toleranz, aber die Bewertung %2 benutzt keine.</translation></message>
<message><source>%1 has changed since you trained it.</source><translation>%1 hat sich geändert, seit du es trainiert hast.</translation></message>
<message><source>%1 has ended.</source><translation>%1 ist beendet.</translation></message>
<message><source>%1 has its weights %2.</source><translation>%1 hat seine Gewichte %2.</translation></message>
<message><source>%1 has no %2.</source><translation>%1 hat kein %2.</translation></message>
<message><source>%1 has no questions.</source><translation>%1 hat keine Fragen.</translation></message>
<message><source>%1 has no specialty %2.</source><translation>%1 hat kein Fachgebiet %2.</translation></message>
<message><source>%1 has no such revision.</source><translation>%1 hat keine solche Revision.</translation></message>
<message><source>%1 has no visible character</source><translation>%1 hat kein sichtbares Zeichen</translation></message>
<message><source>%1 has rounds already.</source><translation>%1 hat schon Runden.</translation></message>
<message><source>%1 has too few questions for %2 a round.</source><translation>%1 hat zu wenige Fragen für %2 je Runde.</translation></message>
<message><source>%1 has too few questions of %2 for a worked example.</source><translation>%1 hat zu wenige Fragen zu %2 für ein gelöstes Beispiel.</translation></message>
<message><source>%1 has white space around it</source><translation>%1 hat Leerraum am Rand</translation></message>
<message><source>%1 holds no settings of a model.</source><translation>%1 enthält keine Einstellungen eines Modells.</translation></message>
<message><source>%1 hours</source><translation>%1 Stunden</translation></message>
<message><source>%1 in %2.</source><translation>%1 in %2 trainiert.</translation></message>
<message><source>%1 is %2, which is no web address.</source><translation>%1 ist %2, und das ist keine Webadresse.</translation></message>
<message><source>%1 is %2.</source><translation>%1 ist %2.</translation></message>
<message><source>%1 is a folder of yours, which Waggle does not delete.</source><translation>%1 ist ein Ordner von dir, den Waggle nicht löscht.</translation></message>
<message><source>%1 is a private swarm, and its key is not here.</source><translation>%1 ist ein privater Schwarm, und sein Schlüssel ist nicht hier.</translation></message>
<message><source>%1 is being downloaded by another program.</source><translation>%1 wird gerade von einem anderen Programm geladen.</translation></message>
<message><source>%1 is being downloaded. Until it is here, you train the starter: see the page Models.</source><translation>%1 wird heruntergeladen. Bis es da ist, trainierst du den Starter: siehe die Seite Modelle.</translation></message>
<message><source>%1 is damaged and cannot be set aside: %2.</source><translation>%1 ist beschädigt und lässt sich nicht beiseitelegen: %2.</translation></message>
<message><source>%1 is empty</source><translation>%1 ist leer</translation></message>
<message><source>%1 is given only to those who accepted its licence.</source><translation>%1 bekommt nur, wer seine Lizenz angenommen hat.</translation></message>
<message><source>%1 is in another time zone, where it is %2.</source><translation>%1 liegt in einer anderen Zeitzone, dort ist es %2 Uhr.</translation></message>
<message><source>%1 is in use by another engine.</source><translation>%1 wird von einer anderen Engine verwendet.</translation></message>
<message><source>%1 is incomplete</source><translation>%1 ist unvollständig</translation></message>
<message><source>%1 is larger than %2 MiB.</source><translation>%1 ist größer als %2 MiB.</translation></message>
<message><source>%1 is missing</source><translation>%1 fehlt</translation></message>
<message><source>%1 is no file of a run: %2.</source><translation>%1 ist keine Datei eines Laufs: %2.</translation></message>
<message><source>%1 is no file of questions.</source><translation>%1 ist keine Datei mit Fragen.</translation></message>
<message><source>%1 is no gateway's address.</source><translation>%1 ist keine Adresse eines Gateways.</translation></message>
<message><source>%1 is no name for a model.</source><translation>%1 ist kein Name für ein Modell.</translation></message>
<message><source>%1 is no number</source><translation>%1 ist keine Zahl</translation></message>
<message><source>%1 is no peer's id.</source><translation>%1 ist keine Kennung eines Peers.</translation></message>
<message><source>%1 is no recorded run.</source><translation>%1 ist kein aufgezeichneter Lauf.</translation></message>
<message><source>%1 is not a file</source><translation>%1 ist keine Datei</translation></message>
<message><source>%1 is not a file.</source><translation>%1 ist keine Datei.</translation></message>
<message><source>%1 is not a seed's address.</source><translation>%1 ist keine Adresse eines Seeds.</translation></message>
<message><source>%1 is not installed, so it gets no figures.</source><translation>%1 ist nicht installiert und bekommt deshalb keine Zahlen.</translation></message>
<message><source>%1 is not of the form section.name=value.</source><translation>%1 hat nicht die Form abschnitt.name=wert.</translation></message>
<message><source>%1 is not on this computer yet.</source><translation>%1 ist noch nicht auf diesem Computer.</translation></message>
<message><source>%1 is not the name of a model.</source><translation>%1 ist kein Name eines Modells.</translation></message>
<message><source>%1 is not valid TOML: %2. Mend that line, or rename the file.</source><translation>%1 ist kein gültiges TOML: %2. Berichtige die Zeile, oder benenne die Datei um.</translation></message>
<message><source>%1 is of a run with peers, which cannot be repeated.</source><translation>%1 ist von einem Lauf mit Peers, der sich nicht wiederholen lässt.</translation></message>
<message><source>%1 is running.</source><translation>%1 läuft.</translation></message>
<message><source>%1 is the model of now</source><translation>%1 ist vom Modell von heute</translation></message>
<message><source>%1 is too large: it has more than %2 MB.</source><translation>%1 ist zu groß: mehr als %2 MB.</translation></message>
<message><source>%1 is too long for a run.</source><translation>%1 ist zu lang für einen Lauf.</translation></message>
<message><source>%1 is trained instead.</source><translation>Stattdessen wird %1 trainiert.</translation></message>
<message><source>%1 judged</source><translation>%1 bewertet</translation></message>
<message><source>%1 keeps training until the new model is ready.</source><translation>%1 trainiert weiter, bis das neue Modell bereit ist.</translation></message>
<message><source>%1 million parameters</source><translation>%1 Mio. Parameter</translation></message>
<message><source>%1 min</source><translation>%1 min</translation></message>
<message><source>%1 min ago</source><translation>vor %1 min</translation></message>
<message><source>%1 minutes</source><translation>%1 Minuten</translation></message>
<message><source>%1 names %2, which is not there.</source><translation>%1 nennt %2, und das gibt es nicht.</translation></message>
<message><source>%1 names %2, which it may not: %3.</source><translation>%1 nennt %2, was nicht erlaubt ist: %3.</translation></message>
<message><source>%1 names a key for which everybody can sign.</source><translation>%1 nennt einen Schlüssel, für den jeder unterschreiben kann.</translation></message>
<message><source>%1 names a level of %2 that does not exist.</source><translation>%1 nennt eine Stufe von %2, die es nicht gibt.</translation></message>
<message><source>%1 names a level of %2 with false answers.</source><translation>%1 nennt eine Stufe von %2, deren Antworten falsch sind.</translation></message>
<message><source>%1 names a revision.</source><translation>%1 nennt eine Revision.</translation></message>
<message><source>%1 needs %2 more, and the disk has %3 free.</source><translation>%1 braucht noch %2, und die Festplatte hat %3 frei.</translation></message>
<message><source>%1 of %2</source><translation>%1 von %2</translation></message>
<message><source>%1 of %2 MB</source><translation>%1 von %2 MB</translation></message>
<message><source>%1 of %2 answers are %3; line %4 is not: "%5".</source><translation>%1 von %2 Antworten sind %3; Zeile %4 ist anders: "%5".</translation></message>
<message><source>%1 of %2 answers are written.</source><translation>%1 von %2 Antworten sind geschrieben.</translation></message>
<message><source>%1 of %2 are here; after an interruption it continues there.</source><translation>%1 von %2 sind da; nach einer Unterbrechung geht es dort weiter.</translation></message>
<message><source>%1 of %2 arrived damaged, twice.</source><translation>%1 von %2 kam zweimal beschädigt an.</translation></message>
<message><source>%1 of %2 core</source><translation>%1 von %2 Kern</translation></message>
<message><source>%1 of %2 cores</source><translation>%1 von %2 Kernen</translation></message>
<message><source>%1 of %2 downloaded</source><translation>%1 von %2 geladen</translation></message>
<message><source>%1 of %2 first right answers</source><translation>Erstmals richtig: %1 von %2</translation></message>
<message><source>%1 of %2 kB</source><translation>%1 von %2 kB</translation></message>
<message><source>%1 of %2 new questions right, asked after this round</source><translation>%1 von %2 neuen Fragen richtig, gestellt nach dieser Runde</translation></message>
<message><source>%1 of %2 questions answered.</source><translation>%1 von %2 Fragen beantwortet.</translation></message>
<message><source>%1 of %2 right</source><translation>%1 von %2 richtig</translation></message>
<message><source>%1 of %2 right: %3 (%4 to %5)</source><translation>%1 von %2 richtig: %3 (%4 bis %5)</translation></message>
<message numerus="yes"><source>%1 of %n guesses were right.</source><translation><numerusform>%1 von %n Tipp war richtig.</numerusform><numerusform>%1 von %n Tipps waren richtig.</numerusform></translation></message>
<message><source>%1 of 100</source><translation>%1 von 100</translation></message>
<message><source>%1 of 100 fewer than alone</source><translation>%1 von 100 weniger als allein</translation></message>
<message><source>%1 of 100 more than alone</source><translation>%1 von 100 mehr als allein</translation></message>
<message><source>%1 of 100 with peers, %2 alone after as many rounds. The difference may be chance.</source><translation>%1 von 100 mit Peers, %2 allein nach ebenso vielen Runden. Der Unterschied kann Zufall sein.</translation></message>
<message><source>%1 of all</source><translation>%1 von allen</translation></message>
<message><source>%1 of them right, in %2</source><translation>%1 davon richtig, in %2</translation></message>
<message><source>%1 on %2 (%3), %4, %5 parameters</source><translation>%1 auf %2 (%3), %4, %5 Parameter</translation></message>
<message><source>%1 on the disk. It comes from the Python package index, is checked against sums that came with Waggle, and is under the licences of PyTorch and NVIDIA.</source><translation>%1 auf der Festplatte. Es kommt vom Python Package Index, wird mit Prüfsummen verglichen, die mit Waggle kamen, und steht unter den Lizenzen von PyTorch und NVIDIA.</translation></message>
<message><source>%1 returned a number that is not finite.</source><translation>%1 gab eine Zahl zurück, die nicht endlich ist.</translation></message>
<message numerus="yes"><source>%1 right in the test after %n rounds</source><translation><numerusform>%1 richtig im Test nach %n Runde</numerusform><numerusform>%1 richtig im Test nach %n Runden</numerusform></translation></message>
<message><source>%1 right in the test before its first round</source><translation>%1 richtig im Test vor der ersten Runde</translation></message>
<message><source>%1 s ago</source><translation>vor %1 s</translation></message>
<message><source>%1 seconds</source><translation>%1 Sekunden</translation></message>
<message numerus="yes"><source>%1 sent you %n examples</source><translation><numerusform>%1 schickte dir %n Beispiel</numerusform><numerusform>%1 schickte dir %n Beispiele</numerusform></translation></message>
<message><source>%1 sets %2, which decides no round.</source><translation>%1 setzt %2, was keine Runde bestimmt.</translation></message>
<message><source>%1 speaks protocol %2, this Waggle speaks %3.</source><translation>%1 spricht Protokoll %2, dieses Waggle spricht %3.</translation></message>
<message><source>%1 swarms are remembered already.</source><translation>%1 Schwärme sind schon gemerkt.</translation></message>
<message><source>%1 to download</source><translation>%1 Download</translation></message>
<message><source>%1 today, %2 since %3: about as much as a laptop takes in %4.</source><translation>Heute %1, seit %3 %2: etwa so viel, wie ein Laptop in %4 braucht.</translation></message>
<message><source>%1 unseen questions; band: margin of error</source><translation>%1 nie geübte Fragen; Band: Fehlerspanne</translation></message>
<message><source>%1 waiting</source><translation>%1 warten</translation></message>
<message><source>%1 was closed just now.</source><translation>%1 wurde gerade erst geschlossen.</translation></message>
<message><source>%1 was damaged.</source><translation>%1 war beschädigt.</translation></message>
<message><source>%1 was found</source><translation>%1 wurde gefunden</translation></message>
<message><source>%1 was not converted yet.</source><translation>%1 wurde noch nicht umgewandelt.</translation></message>
<message><source>%1 was right first</source><translation>%1 löste es zuerst</translation></message>
<message><source>%1 was right first.</source><translation>%1 löste es zuerst.</translation></message>
<message><source>%1 would be trained in %2 and lose its updates.</source><translation>%1 würde in %2 trainiert und verlöre, was es lernt.</translation></message>
<message><source>%1 yours, %2 theirs</source><translation>%1 eigene, %2 fremde</translation></message>
<message><source>%1+ answers an hour, %2 of %3 GB of memory</source><translation>%1+ Antworten/h, %2 von %3 GB RAM</translation></message>
<message><source>%1, %2 left</source><translation>%1, noch %2</translation></message>
<message><source>%1, a new question that others take too</source><translation>%1, eine neue Frage, die auch andere annehmen</translation></message>
<message><source>%1, alone</source><translation>%1, allein</translation></message>
<message><source>%1, also in its smallest parts.</source><translation>%1, auch in den kleinsten Teilen.</translation></message>
<message><source>%1, and %2 answers to each, of at most %3 tokens: %4.</source><translation>%1, mit je %2 Antworten von höchstens %3 Token: %4.</translation></message>
<message><source>%1, as you train it</source><translation>%1, wie du es trainierst</translation></message>
<message><source>%1, at %2% of the time</source><translation>%1, zu %2 % der Zeit</translation></message>
<message><source>%1, estimated</source><translation>%1, geschätzt</translation></message>
<message><source>%1, line %2: %3 has this question too, on line %4: %5.</source><translation>%1, Zeile %2: Auch %3 hat diese Frage, in Zeile %4: %5.</translation></message>
<message><source>%1, line %2: %3.</source><translation>%1, Zeile %2: %3.</translation></message>
<message><source>%1, other questions</source><translation>%1, andere Fragen</translation></message>
<message><source>%1, port %2, cannot be listened on: %3.</source><translation>Auf %1, Port %2, lässt sich nicht lauschen: %3.</translation></message>
<message><source>%1, question %2</source><translation>%1, Frage %2</translation></message>
<message><source>%1: %2 was right first</source><translation>%1: %2 löste es zuerst</translation></message>
<message numerus="yes"><source>%1: %n files removed, %2</source><translation><numerusform>%1: %n Datei entfernt, %2</numerusform><numerusform>%1: %n Dateien entfernt, %2</numerusform></translation></message>
<message><source>%1: a question, %2</source><translation>%1: eine Frage, %2</translation></message>
<message><source>%1: from %2 to %3</source><translation>%1: von %2 bis %3</translation></message>
<message><source>%1: nothing</source><translation>%1: nichts</translation></message>
<message><source>%1; answers of all not verified</source><translation>%1; alle Lösungen ungeprüft</translation></message>
<message><source>%2 from %1</source><translation>%2 von %1</translation></message>
<message><source>%2 learned from %1</source><translation>%2 von %1 gelernt</translation></message>
<message><source>%2 on %1</source><translation>%2 Uhr auf %1</translation></message>
<message><source>%2 to %1</source><translation>%2 an %1</translation></message>
<message numerus="yes"><source>%n addresses</source><translation><numerusform>%n Adresse</numerusform><numerusform>%n Adressen</numerusform></translation></message>
<message numerus="yes"><source>%n addresses tried so far.</source><translation><numerusform>%n Adresse bisher versucht.</numerusform><numerusform>%n Adressen bisher versucht.</numerusform></translation></message>
<message numerus="yes"><source>%n answers</source><translation><numerusform>%n Antwort</numerusform><numerusform>%n Antworten</numerusform></translation></message>
<message numerus="yes"><source>%n answers more likely next time</source><translation><numerusform>%n Antwort wird wahrscheinlicher</numerusform><numerusform>%n Antworten werden wahrscheinlicher</numerusform></translation></message>
<message numerus="yes"><source>%n bytes</source><translation><numerusform>%n Byte</numerusform><numerusform>%n Byte</numerusform></translation></message>
<message numerus="yes"><source>%n computers are connected</source><translation><numerusform>%n Computer ist verbunden</numerusform><numerusform>%n Computer sind verbunden</numerusform></translation></message>
<message numerus="yes"><source>%n computers are there now.</source><translation><numerusform>%n Computer ist gerade dort.</numerusform><numerusform>%n Computer sind gerade dort.</numerusform></translation></message>
<message numerus="yes"><source>%n computers train with you</source><translation><numerusform>%n Computer trainiert mit dir</numerusform><numerusform>%n Computer trainieren mit dir</numerusform></translation></message>
<message numerus="yes"><source>%n computers trained with you</source><translation><numerusform>%n Computer trainierte mit dir</numerusform><numerusform>%n Computer trainierten mit dir</numerusform></translation></message>
<message numerus="yes"><source>%n computers were there when last asked.</source><translation><numerusform>%n Computer war bei der letzten Nachfrage dort.</numerusform><numerusform>%n Computer waren bei der letzten Nachfrage dort.</numerusform></translation></message>
<message numerus="yes"><source>%n cores of %1 W each</source><translation><numerusform>%n Kern mit %1 W</numerusform><numerusform>%n Kerne mit je %1 W</numerusform></translation></message>
<message numerus="yes"><source>%n direct</source><translation><numerusform>%n direkt</numerusform><numerusform>%n direkt</numerusform></translation></message>
<message numerus="yes"><source>%n downloads</source><translation><numerusform>%n Download</numerusform><numerusform>%n Downloads</numerusform></translation></message>
<message numerus="yes"><source>%n earlier turns were left out: there was no room for them.</source><translation><numerusform>%n früherer Wortwechsel blieb weg: Dafür war kein Platz.</numerusform><numerusform>%n frühere Wortwechsel blieben weg: Dafür war kein Platz.</numerusform></translation></message>
<message numerus="yes"><source>%n examples</source><translation><numerusform>%n Beispiel</numerusform><numerusform>%n Beispiele</numerusform></translation></message>
<message numerus="yes"><source>%n examples from %1</source><translation><numerusform>%n Beispiel von %1</numerusform><numerusform>%n Beispielen von %1</numerusform></translation></message>
<message numerus="yes"><source>%n examples from peers</source><translation><numerusform>%n Beispiel von Peers</numerusform><numerusform>%n Beispiele von Peers</numerusform></translation></message>
<message numerus="yes"><source>%n examples learned from peers</source><translation><numerusform>%n Beispiel von Peers gelernt</numerusform><numerusform>%n Beispiele von Peers gelernt</numerusform></translation></message>
<message numerus="yes"><source>%n files could not be removed</source><translation><numerusform>%n Datei ließ sich nicht entfernen</numerusform><numerusform>%n Dateien ließen sich nicht entfernen</numerusform></translation></message>
<message numerus="yes"><source>%n files of your own</source><translation><numerusform>%n eigene Datei</numerusform><numerusform>%n eigene Dateien</numerusform></translation></message>
<message numerus="yes"><source>%n files, %1</source><translation><numerusform>%n Datei, %1</numerusform><numerusform>%n Dateien, %1</numerusform></translation></message>
<message numerus="yes"><source>%n first right answers came after learning from another copy.</source><translation><numerusform>%n erste richtige Antwort kam, nachdem eine Kopie von einer anderen gelernt hatte.</numerusform><numerusform>%n erste richtige Antworten kamen, nachdem eine Kopie von einer anderen gelernt hatte.</numerusform></translation></message>
<message numerus="yes"><source>%n for exams</source><translation><numerusform>%n für Prüfungen</numerusform><numerusform>%n für Prüfungen</numerusform></translation></message>
<message numerus="yes"><source>%n gone</source><translation><numerusform>%n weg</numerusform><numerusform>%n weg</numerusform></translation></message>
<message numerus="yes"><source>%n had only right or only wrong answers: nothing to learn.</source><translation><numerusform>%n hatte nur richtige oder nur falsche Antworten: nichts zu lernen.</numerusform><numerusform>%n hatten nur richtige oder nur falsche Antworten: nichts zu lernen.</numerusform></translation></message>
<message numerus="yes"><source>%n had unusual text</source><translation><numerusform>%n mit ungewöhnlichem Text</numerusform><numerusform>%n mit ungewöhnlichem Text</numerusform></translation></message>
<message numerus="yes"><source>%n later rounds will be learned again at the next start, because the engine was killed.</source><translation><numerusform>%n spätere Runde wird beim nächsten Start noch einmal gelernt, weil die Engine beendet wurde.</numerusform><numerusform>%n spätere Runden werden beim nächsten Start noch einmal gelernt, weil die Engine beendet wurde.</numerusform></translation></message>
<message numerus="yes"><source>%n members when last asked</source><translation><numerusform>%n Mitglied bei der letzten Nachfrage</numerusform><numerusform>%n Mitglieder bei der letzten Nachfrage</numerusform></translation></message>
<message numerus="yes"><source>%n members, you included</source><translation><numerusform>nur du bisher</numerusform><numerusform>%n Mitglieder, mit dir</numerusform></translation></message>
<message numerus="yes"><source>%n messages, newest first.</source><translation><numerusform>%n Nachricht, neueste zuerst.</numerusform><numerusform>%n Nachrichten, neueste zuerst.</numerusform></translation></message>
<message numerus="yes"><source>%n newer questions are waiting</source><translation><numerusform>%n neuere Frage wartet</numerusform><numerusform>%n neuere Fragen warten</numerusform></translation></message>
<message numerus="yes"><source>%n newer rounds are waiting</source><translation><numerusform>%n neuere Runde wartet</numerusform><numerusform>%n neuere Runden warten</numerusform></translation></message>
<message numerus="yes"><source>%n of %1 computers train with you</source><translation><numerusform>%n von %1 Computern trainiert mit dir</numerusform><numerusform>%n von %1 Computern trainieren mit dir</numerusform></translation></message>
<message numerus="yes"><source>%n of %1 peers match</source><translation><numerusform>%n von %1 Peers passt</numerusform><numerusform>%n von %1 Peers passen</numerusform></translation></message>
<message numerus="yes"><source>%n on your network</source><translation><numerusform>%n in deinem Netz</numerusform><numerusform>%n in deinem Netz</numerusform></translation></message>
<message numerus="yes"><source>%n other questions</source><translation><numerusform>%n weitere Frage</numerusform><numerusform>%n weitere Fragen</numerusform></translation></message>
<message numerus="yes"><source>%n peers</source><translation><numerusform>%n Peer</numerusform><numerusform>%n Peers</numerusform></translation></message>
<message numerus="yes"><source>%n questions</source><translation><numerusform>%n Frage</numerusform><numerusform>%n Fragen</numerusform></translation></message>
<message numerus="yes"><source>%n questions are longer than your model can read.</source><translation><numerusform>%n Frage ist länger, als dein Modell lesen kann.</numerusform><numerusform>%n Fragen sind länger, als dein Modell lesen kann.</numerusform></translation></message>
<message numerus="yes"><source>%n questions of its own</source><translation><numerusform>%n eigener Frage</numerusform><numerusform>%n eigenen Fragen</numerusform></translation></message>
<message numerus="yes"><source>%n repeated</source><translation><numerusform>%n doppelt</numerusform><numerusform>%n doppelt</numerusform></translation></message>
<message numerus="yes"><source>%n rounds</source><translation><numerusform>%n Runde</numerusform><numerusform>%n Runden</numerusform></translation></message>
<message numerus="yes"><source>%n rounds trained here</source><translation><numerusform>%n Runde trainiert</numerusform><numerusform>%n Runden trainiert</numerusform></translation></message>
<message numerus="yes"><source>%n rules can't be checked on this computer, so they're ignored.</source><translation><numerusform>%n Regel lässt sich hier nicht prüfen und gilt nicht.</numerusform><numerusform>%n Regeln lassen sich hier nicht prüfen und gelten nicht.</numerusform></translation></message>
<message numerus="yes"><source>%n settings</source><translation><numerusform>%n Option</numerusform><numerusform>%n Optionen</numerusform></translation></message>
<message numerus="yes"><source>%n specialties chosen</source><translation><numerusform>%n Fachgebiet gewählt</numerusform><numerusform>%n Fachgebiete gewählt</numerusform></translation></message>
<message numerus="yes"><source>%n taught nothing new</source><translation><numerusform>%n lehrte nichts Neues</numerusform><numerusform>%n lehrten nichts Neues</numerusform></translation></message>
<message numerus="yes"><source>%n taught one answer more often than the questions have it</source><translation><numerusform>%n lehrte eine Antwort öfter, als die Fragen sie haben</numerusform><numerusform>%n lehrten eine Antwort öfter, als die Fragen sie haben</numerusform></translation></message>
<message numerus="yes"><source>%n through a relay</source><translation><numerusform>%n über ein Relais</numerusform><numerusform>%n über ein Relais</numerusform></translation></message>
<message numerus="yes"><source>%n tokens/s</source><translation><numerusform>%n Token/s</numerusform><numerusform>%n Tokens/s</numerusform></translation></message>
<message numerus="yes"><source>%n unreadable messages were ignored</source><translation><numerusform>%n unlesbare Nachricht wurde ignoriert</numerusform><numerusform>%n unlesbare Nachrichten wurden ignoriert</numerusform></translation></message>
<message numerus="yes"><source>%n were left out.</source><translation><numerusform>%n ausgelassen.</numerusform><numerusform>%n ausgelassen.</numerusform></translation></message>
<message numerus="yes"><source>%n were more than the peer's share</source><translation><numerusform>%n war mehr als sein Anteil</numerusform><numerusform>%n waren mehr als sein Anteil</numerusform></translation></message>
<message numerus="yes"><source>%n were too long for your model</source><translation><numerusform>%n zu lang für dein Modell</numerusform><numerusform>%n zu lang für dein Modell</numerusform></translation></message>
<message><source>(hivemind)</source><translation>(hivemind)</translation></message>
<message><source>(next after %1)</source><translation>(der nächste nach %1)</translation></message>
<message><source>(nothing)</source><translation>(nichts)</translation></message>
<message><source>, %1 less likely.</source><translation>, %1 weniger wahrscheinlich.</translation></message>
<message><source>, %1 unknown lines skipped</source><translation>, %1 unbekannte Zeilen übersprungen</translation></message>
<message numerus="yes"><source>, %n after sharing</source><translation><numerusform>, %n nach dem Teilen</numerusform><numerusform>, %n nach dem Teilen</numerusform></translation></message>
<message numerus="yes"><source>, %n of them through a relay</source><translation><numerusform>, %n davon über ein Relais</numerusform><numerusform>, %n davon über ein Relais</numerusform></translation></message>
<message><source>, about %1 left</source><translation>, noch etwa %1</translation></message>
<message><source>0 to 1; close answers count in part</source><translation>0 bis 1; fast Richtiges zählt zum Teil</translation></message>
<message><source>1. Accept its licence on its page, with a free Hugging Face account.</source><translation>1. Nimm die Lizenz auf der Seite des Modells an, mit einem kostenlosen Konto bei Hugging Face.</translation></message>
<message><source>127.0.0.1: for this computer only. 0.0.0.0: for everybody who can reach it.</source><translation>127.0.0.1: nur für diesen Computer. 0.0.0.0: für alle, die ihn erreichen.</translation></message>
<message><source>2. Paste an access token of that account, unless you gave one before.</source><translation>2. Füge ein Zugriffstoken dieses Kontos ein, falls du noch keines angegeben hast.</translation></message>
<message><source>2. The engine runs on another computer. Run this in a terminal there, and paste an access token of that account:</source><translation>2. Die Engine läuft auf einem anderen Computer. Führe dies dort in einem Terminal aus, und füge ein Zugriffstoken dieses Kontos ein:</translation></message>
<message><source>24 tokens for the starter. For other models, Waggle measures what their answers need.</source><translation>24 Tokens für den Starter. Bei anderen Modellen misst Waggle, wie viele ihre Antworten brauchen.</translation></message>
<message><source>8, or fewer if a round would take over two minutes.</source><translation>8, oder weniger, wenn eine Runde länger als zwei Minuten dauern würde.</translation></message>
<message><source>95% interval</source><translation>95-%-Intervall</translation></message>
<message><source>: %1 of %2 right</source><translation>: %1 von %2 richtig</translation></message>
<message numerus="yes"><source>; %n took your examples</source><translation><numerusform>; %n nahm deine Beispiele</numerusform><numerusform>; %n nahmen deine Beispiele</numerusform></translation></message>
<message><source>&lt;answer&gt;…&lt;/answer&gt;: Waggle looks for the answer only in here.</source><translation>&lt;answer&gt;…&lt;/answer&gt;: Nur hierin sucht Waggle die Antwort.</translation></message>
<message><source>A Hugging Face token, if you stored one, goes with `waggle token --forget`.</source><translation>Ein Hugging-Face-Token, falls du eines hinterlegt hast, entfernt `waggle token --forget`.</translation></message>
<message><source>A bee's dance on the comb, watched by four others</source><translation>Der Tanz einer Biene auf der Wabe, vier andere sehen zu</translation></message>
<message><source>A charter has at most %1 files of questions.</source><translation>Eine Charta hat höchstens %1 Dateien mit Fragen.</translation></message>
<message><source>A charter names each level of a specialty once.</source><translation>Eine Charta nennt jede Stufe eines Fachgebiets einmal.</translation></message>
<message><source>A charter names each specialty once.</source><translation>Eine Charta nennt jedes Fachgebiet einmal.</translation></message>
<message><source>A charter's name, hint and titles are plain words on one line.</source><translation>Name, Hinweis und Titel einer Charta sind schlichte Wörter in einer Zeile.</translation></message>
<message><source>A charter's smallest group is larger than its largest.</source><translation>Die kleinste Gruppe einer Charta ist größer als ihre größte.</translation></message>
<message><source>A completion cannot be judged.</source><translation>Eine Antwort lässt sich nicht bewerten.</translation></message>
<message><source>A few questions come first, in the window.</source><translation>Zuerst kommen ein paar Fragen, im Fenster.</translation></message>
<message><source>A file may have %1 questions and %2 MiB. Leave some out.</source><translation>Eine Datei darf %1 Fragen und %2 MiB haben. Lass einige weg.</translation></message>
<message><source>A file may take %1 MiB. Leave some questions out, or shorten them.</source><translation>Eine Datei darf %1 MiB haben. Lass einige Fragen weg oder kürze sie.</translation></message>
<message><source>A first %1 unseen questions; band: margin of error</source><translation>Erste %1 nie geübte Fragen; Band: Fehlerspanne</translation></message>
<message><source>A folder for offline runs. Nothing is sent. Needs the Python package trackio.</source><translation>Ein Ordner für Offline-Läufe. Gesendet wird nichts. Braucht das Python-Paket trackio.</translation></message>
<message><source>A folder for offline runs. Nothing is sent. Needs the Python package wandb.</source><translation>Ein Ordner für Offline-Läufe. Gesendet wird nichts. Braucht das Python-Paket wandb.</translation></message>
<message><source>A folder to which the figures of rounds are written. Needs the Python package tensorboard.</source><translation>Ein Ordner für die Zahlen der Runden. Braucht das Python-Paket tensorboard.</translation></message>
<message><source>A good first model: it follows simple instructions.</source><translation>Ein gutes erstes Modell: Es folgt einfachen Anweisungen.</translation></message>
<message><source>A large model takes time to read, the first time most of all.</source><translation>Ein großes Modell zu lesen dauert, vor allem beim ersten Mal.</translation></message>
<message><source>A line on Home and on Models that you can dismiss.</source><translation>Eine Zeile auf Start und Modelle, die du ausblenden kannst.</translation></message>
<message><source>A little reward for a wrong answer in its tags, so that a model learns to use them.</source><translation>Ein kleiner Lohn für falsche Antworten, die in ihren Tags stehen: So lernt ein Modell, sie zu benutzen.</translation></message>
<message><source>A made-up name and a public key</source><translation>Ein erfundener Name und ein öffentlicher Schlüssel</translation></message>
<message><source>A model from a folder</source><translation>Ein Modell aus einem Ordner</translation></message>
<message><source>A name has 60 characters, a hint %1.</source><translation>Ein Name hat 60 Zeichen, ein Hinweis %1.</translation></message>
<message><source>A page for browsers that shows how the swarm is doing.</source><translation>Eine Seite für Browser, die zeigt, wie es dem Schwarm geht.</translation></message>
<message><source>A part of the journal is damaged, or another version of Waggle wrote it.</source><translation>Ein Teil des Journals ist beschädigt, oder eine andere Version von Waggle hat ihn geschrieben.</translation></message>
<message><source>A passphrase has at least %1 characters.</source><translation>Eine Passphrase hat mindestens %1 Zeichen.</translation></message>
<message><source>A peer</source><translation>Ein Peer</translation></message>
<message><source>A picture is taken of a recorded run.</source><translation>Ein Bild entsteht aus einem aufgezeichneten Lauf.</translation></message>
<message><source>A picture's name ends in .png, in a folder that is there.</source><translation>Der Name eines Bildes endet auf .png, und seinen Ordner gibt es schon.</translation></message>
<message><source>A program fills the screen.</source><translation>Ein Programm füllt den Bildschirm.</translation></message>
<message><source>A quantised model is trained with adapters only.</source><translation>Ein quantisiertes Modell wird nur mit Adaptern trainiert.</translation></message>
<message><source>A quarter of them, at least 1</source><translation>Ein Viertel davon, mindestens 1</translation></message>
<message><source>A question</source><translation>Eine Frage</translation></message>
<message><source>A question cannot be made.</source><translation>Eine Frage lässt sich nicht herstellen.</translation></message>
<message><source>A question for the swarm</source><translation>Eine Frage für den Schwarm</translation></message>
<message><source>A question it never trains on</source><translation>Eine Frage, mit der es nie trainiert</translation></message>
<message><source>A question with a model's answers. Peers share these.</source><translation>Eine Frage mit den Antworten eines Modells. Das teilen Peers miteinander.</translation></message>
<message><source>A recorded run cannot be changed.</source><translation>Eine Aufzeichnung lässt sich nicht ändern.</translation></message>
<message><source>A right answer: %1</source><translation>Eine richtige Antwort: %1</translation></message>
<message numerus="yes"><source>A round asks %n questions</source><translation><numerusform>Eine Runde stellt %n Frage</numerusform><numerusform>Eine Runde stellt %n Fragen</numerusform></translation></message>
<message><source>A saved state could not be read: %1</source><translation>Ein gespeicherter Stand war nicht lesbar: %1</translation></message>
<message><source>A setting is a truth value, a number, a text or a list.</source><translation>Eine Einstellung ist ein Wahrheitswert, eine Zahl, ein Text oder eine Liste.</translation></message>
<message><source>A swarm cannot be made of this: %1.</source><translation>Daraus lässt sich kein Schwarm machen: %1.</translation></message>
<message><source>A swarm has at most four files of questions.</source><translation>Ein Schwarm hat höchstens vier Dateien mit Fragen.</translation></message>
<message><source>A swarm is a group of computers that practise the same specialties, such as fractions or logic.</source><translation>Ein Schwarm: Computer, die dieselben Fachgebiete üben, etwa Brüche oder Logik.</translation></message>
<message><source>A swarm needs at least %1 different questions beside the tenth that is reserved for the exam. This file has %2, of which %3 are not reserved.</source><translation>Ein Schwarm braucht mindestens %1 verschiedene Fragen neben dem Zehntel, das für die Prüfung zurückgelegt wird. Diese Datei hat %2, von denen %3 nicht zurückgelegt sind.</translation></message>
<message><source>A swarm of your own</source><translation>Ein eigener Schwarm</translation></message>
<message><source>A transformers folder</source><translation>Ein transformers-Ordner</translation></message>
<message><source>About as much as a laptop in %1</source><translation>Etwa so viel wie ein Laptop in %1</translation></message>
<message><source>Above 50%, the screen may stutter.</source><translation>Über 50 % kann der Bildschirm ruckeln.</translation></message>
<message><source>Accept it on https://huggingface.co/%1, then give Waggle a token of yours with `waggle token`.</source><translation>Nimm sie auf https://huggingface.co/%1 an, und gib Waggle dann mit `waggle token` ein Token von dir.</translation></message>
<message><source>Accept the licence of %1 first</source><translation>Nimm zuerst die Lizenz von %1 an</translation></message>
<message><source>Access token</source><translation>Zugriffstoken</translation></message>
<message><source>Adapters (LoRA) are trained</source><translation>Adapter (LoRA) werden</translation></message>
<message><source>Adapters (LoRA) are trained over layers in 4 bits</source><translation>Adapter (LoRA) werden über Schichten in 4 Bit</translation></message>
<message><source>Adaptive</source><translation>Anpassend</translation></message>
<message><source>Add a file of questions</source><translation>Datei mit Fragen hinzufügen</translation></message>
<message><source>Add a file of questions...</source><translation>Datei mit Fragen hinzufügen …</translation></message>
<message><source>Add some questions.</source><translation>Füge einige Fragen hinzu.</translation></message>
<message><source>Address of the status page</source><translation>Adresse der Statusseite</translation></message>
<message><source>Addresses of models look like huggingface.co/OWNER/NAME.</source><translation>Adressen von Modellen sehen so aus: huggingface.co/OWNER/NAME.</translation></message>
<message><source>Advanced</source><translation>Erweitert</translation></message>
<message><source>After %1 your model earns a reward of %2; its first score on new questions is still to come</source><translation>Nach %1 verdient dein Modell eine Belohnung von %2; der erste Wert bei neuen Fragen kommt noch</translation></message>
<message><source>After %1 your model gets %2 of %3 new questions right, which suggests %4 to %5 of 100</source><translation>Nach %1 beantwortet dein Modell %2 von %3 neuen Fragen richtig, also %4 bis %5 von 100</translation></message>
<message><source>After %1 your model gets %2 of 100 new questions right</source><translation>Nach %1 beantwortet dein Modell %2 von 100 neuen Fragen richtig</translation></message>
<message><source>After %1 your model gets %2 of 100 new questions right; it began at %3</source><translation>Nach %1 beantwortet dein Modell %2 von 100 neuen Fragen richtig; am Anfang waren es %3</translation></message>
<message><source>After %1 your model gets %2 of 100 new questions right; on these questions it began at %3</source><translation>Nach %1 beantwortet dein Modell %2 von 100 neuen Fragen richtig; bei diesen Fragen waren es am Anfang %3</translation></message>
<message numerus="yes"><source>After %n rounds</source><translation><numerusform>Nach %n Runde</numerusform><numerusform>Nach %n Runden</numerusform></translation></message>
<message><source>After a day of work without a shortage, the next start tries larger parts. Closing other programs helps.</source><translation>Nach einem Tag Arbeit ohne Knappheit versucht der nächste Start größere Teile. Andere Programme zu schließen hilft.</translation></message>
<message><source>After an example</source><translation>Nach einem Beispiel</translation></message>
<message><source>After an example, answer begun</source><translation>Nach einem Beispiel, Antwort begonnen</translation></message>
<message><source>After this round</source><translation>Nach dieser Runde</translation></message>
<message><source>After you moved to another computer: this one makes itself a new name and key, and keeps the old key file. One key must never run on two computers at once: peers would take them for one.</source><translation>Nach einem Umzug auf einen anderen Computer: Dieser macht sich einen neuen Namen und Schlüssel und bewahrt die alte Datei auf. Ein Schlüssel darf nie auf zwei Computern zugleich laufen: Peers hielten sie für einen.</translation></message>
<message><source>Algorithms</source><translation>Algorithmen</translation></message>
<message><source>Alice's family</source><translation>Alices Familie</translation></message>
<message><source>All</source><translation>Alle</translation></message>
<message><source>All answers</source><translation>Alle Antworten</translation></message>
<message><source>All hours</source><translation>Alle Stunden</translation></message>
<message><source>All is as it was before.</source><translation>Alles ist wie vorher.</translation></message>
<message><source>All rounds as a table</source><translation>Alle Runden als Tabelle</translation></message>
<message><source>All settings fit on a page: is this the right file?</source><translation>Alle Optionen passen auf eine Seite: Ist das die richtige Datei?</translation></message>
<message><source>All specialties</source><translation>Alle Fachgebiete</translation></message>
<message><source>All times, days and your week are told as they are there.</source><translation>Alle Uhrzeiten, die Tage und deine Woche sind so angegeben wie dort.</translation></message>
<message><source>All weights</source><translation>Alle Gewichte</translation></message>
<message><source>All weights are trained</source><translation>Alle Gewichte werden</translation></message>
<message><source>All weights are trained with little memory</source><translation>Alle Gewichte werden mit wenig Speicher</translation></message>
<message><source>All weights, if memory allows</source><translation>Alle, wenn der Speicher reicht</translation></message>
<message><source>All weights, saving memory</source><translation>Alle Gewichte, speichersparend</translation></message>
<message><source>All: each model asks most at the level where it learns most.</source><translation>Alle: Jedes Modell fragt am meisten auf der Stufe, auf der es am meisten lernt.</translation></message>
<message><source>Allow again</source><translation>Wieder zulassen</translation></message>
<message><source>Allow longer answers</source><translation>Längere Antworten erlauben</translation></message>
<message><source>Allowing…</source><translation>Wird zugelassen …</translation></message>
<message><source>Alone</source><translation>Allein</translation></message>
<message><source>Alone leads, %1 to %2</source><translation>Allein führt, %1 zu %2</translation></message>
<message><source>Also on this computer</source><translation>Auch auf diesem Computer</translation></message>
<message><source>Always</source><translation>Immer</translation></message>
<message><source>Always through gateways</source><translation>Immer über Gateways</translation></message>
<message><source>An adapter (LoRA)</source><translation>Ein Adapter (LoRA)</translation></message>
<message><source>An adapter needs much less memory than all weights, and learns a little less.</source><translation>Ein Adapter braucht viel weniger Speicher als alle Gewichte und lernt etwas weniger.</translation></message>
<message><source>An adapter, 4-bit model (QLoRA)</source><translation>Ein Adapter, 4-Bit-Modell (QLoRA)</translation></message>
<message><source>An answer is still being written.</source><translation>Es wird noch eine Antwort geschrieben.</translation></message>
<message><source>An invite link</source><translation>Ein Einladungslink</translation></message>
<message><source>An untrained model wrote this, in eight tries:</source><translation>Das schrieb ein untrainiertes Modell in acht Versuchen:</translation></message>
<message><source>Announcement</source><translation>Ankündigung</translation></message>
<message><source>Another computer takes part with this node's identity, and the two hold each other back.</source><translation>Ein anderer Computer nimmt mit der Identität dieses Knotens teil, und die beiden behindern sich.</translation></message>
<message><source>Another computer that trains in your swarm.</source><translation>Ein anderer Computer, der in deinem Schwarm trainiert.</translation></message>
<message><source>Another engine is running for this folder.</source><translation>Für diesen Ordner läuft schon eine Engine.</translation></message>
<message><source>Another engine, or a seed, is running for this folder.</source><translation>Für diesen Ordner läuft schon eine Engine oder ein Seed.</translation></message>
<message><source>Another model was chosen meanwhile.</source><translation>Inzwischen wurde ein anderes Modell gewählt.</translation></message>
<message><source>Another question</source><translation>Andere Frage</translation></message>
<message><source>Another swarm cannot be chosen now.</source><translation>Jetzt lässt sich kein anderer Schwarm wählen.</translation></message>
<message><source>Another table is still being saved.</source><translation>Eine andere Tabelle wird noch gespeichert.</translation></message>
<message><source>Answer</source><translation>Antworten</translation></message>
<message><source>Answer %1</source><translation>Antwort %1</translation></message>
<message><source>Answer tag</source><translation>Antwort-Tag</translation></message>
<message><source>Answers</source><translation>Antworten</translation></message>
<message><source>Answers are plain values, or one list or object of them.</source><translation>Antworten sind einfache Werte oder eine Liste oder ein Objekt davon.</translation></message>
<message><source>Answers not verified</source><translation>Lösungen ungeprüft</translation></message>
<message><source>Answers not verified (%1): its answer keys could not be checked independently; its scorer was tested with altered answers.</source><translation>Lösungen ungeprüft (%1): Sie ließen sich nicht unabhängig prüfen; die Bewertung wurde mit veränderten Antworten getestet.</translation></message>
<message><source>Answers not verified: its answer keys could not be checked independently; its scorer was tested with altered answers.</source><translation>Lösungen ungeprüft: Sie ließen sich nicht unabhängig prüfen; die Bewertung wurde mit veränderten Antworten getestet.</translation></message>
<message><source>Answers to each question</source><translation>Antworten je Frage</translation></message>
<message><source>Answers, checks and the log</source><translation>Antworten, Prüfungen und das Protokoll</translation></message>
<message><source>Any text may hold the stop token of the model in %1.</source><translation>Jeder Text kann das Schlusstoken des Modells in %1 enthalten.</translation></message>
<message><source>Any time.</source><translation>Jederzeit.</translation></message>
<message><source>Any; small ones do best with easy questions</source><translation>Beliebig; für kleine sind leichte Fragen gut</translation></message>
<message><source>Appearance and startup</source><translation>Aussehen und Start</translation></message>
<message><source>Applies from the next start.</source><translation>Gilt ab dem nächsten Start.</translation></message>
<message><source>Apr</source><translation>Apr</translation></message>
<message><source>Are shared</source><translation>Werden geteilt</translation></message>
<message><source>Arithmetic</source><translation>Rechnen</translation></message>
<message><source>As needed</source><translation>Nach Bedarf</translation></message>
<message><source>As published</source><translation>Wie veröffentlicht</translation></message>
<message><source>As usual for the model</source><translation>Wie für das Modell üblich</translation></message>
<message><source>Ask a member for an invite: its link carries the key.</source><translation>Bitte ein Mitglied um eine Einladung: Ihr Link enthält den Schlüssel.</translation></message>
<message><source>Ask again when it runs.</source><translation>Frag noch einmal, wenn er läuft.</translation></message>
<message><source>Ask as who started it, or name its folder with --home.</source><translation>Frag als der, der ihn gestartet hat, oder nenne seinen Ordner mit --home.</translation></message>
<message><source>Ask for an invite from a member whose node lends its web port.</source><translation>Bitte ein Mitglied um eine Einladung, dessen Knoten seinen Web-Port leiht.</translation></message>
<message><source>Ask for another one.</source><translation>Verlange eine andere.</translation></message>
<message><source>Ask for it again, or take a screenshot of it.</source><translation>Bitte noch einmal darum, oder mach ein Bildschirmfoto davon.</translation></message>
<message><source>Ask for the code of a Waggle invite, or for its link.</source><translation>Bitte um den Code einer Waggle-Einladung oder um ihren Link.</translation></message>
<message><source>Ask for the invite again: it was probably damaged.</source><translation>Bitte noch einmal um die Einladung: Sie wurde wohl beschädigt.</translation></message>
<message><source>Ask for the link again, and copy it whole.</source><translation>Bitte noch einmal um den Link, und kopiere ihn vollständig.</translation></message>
<message><source>Ask it in another way</source><translation>Anders fragen</translation></message>
<message><source>Ask me the first time</source><translation>Beim ersten Mal fragen</translation></message>
<message><source>Ask more questions a round</source><translation>Mehr Fragen je Runde</translation></message>
<message><source>Ask the model</source><translation>Das Modell fragen</translation></message>
<message><source>Ask the router to let others in</source><translation>Den Router bitten, andere hereinzulassen</translation></message>
<message><source>Ask this network's operator, or choose another proxy, or none.</source><translation>Wende dich an den Betreiber dieses Netzwerks, oder wähle einen anderen Proxy oder keinen.</translation></message>
<message><source>Ask whoever created the swarm: the file has to be made anew with this Waggle.</source><translation>Frag, wer den Schwarm erstellt hat: Die Datei muss mit diesem Waggle neu erstellt werden.</translation></message>
<message><source>Asked %1, because %2 of %3 answers could be read that way.</source><translation>Gefragt wird es %1, weil sich so %2 von %3 Antworten lesen ließen.</translation></message>
<message><source>Asked %1, but no answer could be read, whichever way it was asked.</source><translation>Gefragt wird es %1, aber keine Antwort ließ sich lesen, egal, wie es gefragt wurde.</translation></message>
<message><source>Asked %1, which worked best, but only %2 of %3 answers could be read that way.</source><translation>Gefragt wird es %1. Das ging am besten, aber nur %2 von %3 Antworten ließen sich so lesen.</translation></message>
<message><source>Asked %1.</source><translation>Gefragt wird es %1.</translation></message>
<message><source>Asked as you chose: %1.</source><translation>Gefragt wird es, wie du es gewählt hast: %1.</translation></message>
<message><source>Asking the computers that the link names; a few seconds.</source><translation>Die Computer, die der Link nennt, werden gefragt; einige Sekunden.</translation></message>
<message><source>At least 8 characters; four words nobody would guess are good.</source><translation>Mindestens 8 Zeichen; vier Wörter, die niemand erraten würde, sind gut.</translation></message>
<message><source>At most %1 specialties.</source><translation>Höchstens %1 Fachgebiete.</translation></message>
<message><source>At most every ten minutes each model answers the same 16 questions, which nobody trains on. Every answer is marked again on this computer. Which model wrote it is what each computer says of itself.</source><translation>Höchstens alle zehn Minuten beantwortet jedes Modell dieselben 16 Fragen, mit denen niemand trainiert. Jede Antwort wird auf diesem Computer noch einmal bewertet. Welches Modell sie schrieb, sagt jeder Computer nur von sich selbst.</translation></message>
<message><source>At your price of %1 for a kWh that is %2 today and %3 in all.</source><translation>Bei deinem Preis von %1 je kWh sind das heute %2 und insgesamt %3.</translation></message>
<message><source>Aug</source><translation>Aug</translation></message>
<message><source>Automatic</source><translation>Automatisch</translation></message>
<message><source>Automatic tries each form once and keeps the one with the most readable answers.</source><translation>„Automatisch“ probiert jede Form einmal und behält die mit den meisten lesbaren Antworten.</translation></message>
<message><source>Back</source><translation>Zurück</translation></message>
<message><source>Back up</source><translation>Sichern</translation></message>
<message><source>Back up your identity</source><translation>Identität sichern</translation></message>
<message><source>Balanced</source><translation>Ausgewogen</translation></message>
<message><source>Base conversion</source><translation>Zahlensysteme</translation></message>
<message><source>Become %1</source><translation>%1 werden</translation></message>
<message><source>Before any training</source><translation>Vor dem Training</translation></message>
<message><source>Before its first round your model gets %2 of %3 new questions right, which suggests %4 to %5 of 100</source><translation>Vor seiner ersten Runde beantwortet dein Modell %2 von %3 neuen Fragen richtig, also %4 bis %5 von 100</translation></message>
<message><source>Before its first round your model gets %2 of 100 new questions right</source><translation>Vor seiner ersten Runde beantwortet dein Modell %2 von 100 neuen Fragen richtig</translation></message>
<message><source>Below 100% it rests between steps.</source><translation>Unter 100 % ruht es zwischen den Schritten.</translation></message>
<message><source>Below: round %1, the last one before that.</source><translation>Darunter: Runde %1, die letzte davor.</translation></message>
<message><source>Binary alternation</source><translation>Nullen und Einsen abwechseln</translation></message>
<message><source>Blind test: guess which is which</source><translation>Blindtest: Welches ist welches?</translation></message>
<message><source>Block</source><translation>Sperren</translation></message>
<message><source>Block: it gets nothing from you either.</source><translation>Sperren: Er bekommt auch nichts von dir.</translation></message>
<message><source>Blocked</source><translation>Gesperrt</translation></message>
<message><source>Blocking…</source><translation>Wird gesperrt…</translation></message>
<message><source>Both answered the same.</source><translation>Beide haben gleich geantwortet.</translation></message>
<message><source>Both curves appear here</source><translation>Beide Kurven erscheinen hier</translation></message>
<message><source>Both use reasoning-gym %1. Install Waggle again, or ask whoever wrote the charter.</source><translation>Beide benutzen reasoning-gym %1. Installiere Waggle neu, oder wende dich an den, der die Charta geschrieben hat.</translation></message>
<message><source>Brisk Otter</source><translation>Brisk Otter</translation></message>
<message><source>By each computer's last hour of answers; self-reported.</source><translation>Nach den Antworten jedes Computers in der letzten Stunde; nach eigenen Angaben.</translation></message>
<message><source>By own probability</source><translation>Nach eigener Wahrscheinlichkeit</translation></message>
<message><source>CUDA</source><translation>CUDA</translation></message>
<message><source>CUDA cannot be removed: %1.</source><translation>CUDA lässt sich nicht entfernen: %1.</translation></message>
<message><source>CUDA cannot be written to the disk: %1.</source><translation>CUDA lässt sich nicht auf die Festplatte schreiben: %1.</translation></message>
<message><source>CUDA is being downloaded by another window of Waggle.</source><translation>CUDA wird gerade von einem anderen Fenster von Waggle geladen.</translation></message>
<message><source>CUDA is here, but it finds no graphics card that it can use: its driver may be too old, 580 is needed</source><translation>CUDA ist da, findet aber keine Grafikkarte, die es benutzen kann: ihr Treiber ist vielleicht zu alt, nötig ist 580</translation></message>
<message><source>CUDA is installed. Waggle uses it from its next start.</source><translation>CUDA ist installiert. Waggle benutzt es ab dem nächsten Start.</translation></message>
<message><source>CUDA needs %1 GB more, and the disk has %2 GB free.</source><translation>CUDA braucht noch %1 GB, und auf der Festplatte sind %2 GB frei.</translation></message>
<message><source>Caches</source><translation>Zwischenspeicher</translation></message>
<message><source>Caesar cipher</source><translation>Caesar-Chiffre</translation></message>
<message><source>Calendar</source><translation>Kalender</translation></message>
<message><source>Calendar of your days; arrow keys read it day by day</source><translation>Kalender deiner Tage; Pfeiltasten lesen ihn Tag für Tag</translation></message>
<message><source>Can it use more of my computer, or less?</source><translation>Kann es mehr oder weniger von meinem Computer nutzen?</translation></message>
<message><source>Can't tell</source><translation>Weiß nicht</translation></message>
<message><source>Cancel</source><translation>Abbrechen</translation></message>
<message><source>Cancel the download first.</source><translation>Brich zuerst den Download ab.</translation></message>
<message><source>Cancelling A and B</source><translation>A und B streichen</translation></message>
<message><source>Cannot be held off</source><translation>Lässt sich nicht aufhalten</translation></message>
<message><source>Chain sum</source><translation>Kettenrechnung</translation></message>
<message><source>Change it, or delete the question.</source><translation>Ändere sie oder lösche die Frage.</translation></message>
<message><source>Change rule</source><translation>Regel ändern</translation></message>
<message><source>Change the limit</source><translation>Grenze ändern</translation></message>
<message><source>Change them on the page Settings.</source><translation>Ändere sie auf der Seite Optionen.</translation></message>
<message><source>Changes take effect immediately</source><translation>Änderungen gelten sofort</translation></message>
<message><source>Charts</source><translation>Diagramme</translation></message>
<message><source>Charts appear after the first round</source><translation>Diagramme erscheinen nach der ersten Runde</translation></message>
<message><source>Charts: go to the next point; with Shift, move the view</source><translation>Diagramme: zum nächsten Punkt; mit Umschalt den Ausschnitt verschieben</translation></message>
<message><source>Charts: zoom in or out, or show the whole run</source><translation>Diagramme: vergrößern, verkleinern oder den ganzen Lauf zeigen</translation></message>
<message><source>Chat</source><translation>Gespräch</translation></message>
<message><source>Check</source><translation>Prüfen</translation></message>
<message><source>Check `model.folder` in the settings, or remove it to use the starter.</source><translation>Prüfe `model.folder` in den Optionen, oder entferne es für den Starter.</translation></message>
<message><source>Check `swarm.charter` in the settings.</source><translation>Prüfe `swarm.charter` in den Optionen.</translation></message>
<message><source>Check a backup</source><translation>Sicherung prüfen</translation></message>
<message><source>Check for updates</source><translation>Nach Updates suchen</translation></message>
<message><source>Check its name, and who owns it.</source><translation>Prüfe den Namen, und wem sie gehört.</translation></message>
<message><source>Check its name; for a private one, give Waggle a token with `waggle token`.</source><translation>Prüfe seinen Namen; für ein privates gib Waggle mit `waggle token` ein Token.</translation></message>
<message><source>Check its path, and whether its disk is connected.</source><translation>Prüfe den Pfad, und ob der Datenträger angeschlossen ist.</translation></message>
<message><source>Check its path.</source><translation>Prüfe den Pfad.</translation></message>
<message><source>Check the connection, then search again.</source><translation>Prüfe die Verbindung und suche noch einmal.</translation></message>
<message><source>Check the internet connection, and try again later.</source><translation>Prüfe die Internetverbindung, und versuche es später noch einmal.</translation></message>
<message><source>Check the internet connection, or ask for a newer invite.</source><translation>Prüfe die Internetverbindung, oder bitte um eine neuere Einladung.</translation></message>
<message><source>Check the internet connection, or ask for another gateway.</source><translation>Prüfe die Internetverbindung, oder bitte um ein anderes Gateway.</translation></message>
<message><source>Check this computer's clock. A network that looks into connections needs its certificate in SSL_CERT_FILE.</source><translation>Prüfe die Uhr dieses Computers. Ein Netzwerk, das in Verbindungen hineinsieht, braucht sein Zertifikat in SSL_CERT_FILE.</translation></message>
<message><source>Check who owns it.</source><translation>Prüfe, wem sie gehört.</translation></message>
<message><source>Checked by one program only: there is no second way to check these answers.</source><translation>Nur von einem Programm geprüft: Es gibt keinen zweiten Weg, diese Antworten zu prüfen.</translation></message>
<message><source>Checking %1</source><translation>%1 wird geprüft</translation></message>
<message><source>Checking.</source><translation>Wird geprüft.</translation></message>
<message><source>Checkpoints, their journal, and the album of earlier moments.</source><translation>Stände, ihr Journal und das Album früherer Momente.</translation></message>
<message><source>Choose</source><translation>Wählen</translation></message>
<message><source>Choose %1, which it was made from.</source><translation>Wähle %1, woraus es gemacht ist.</translation></message>
<message><source>Choose Invite someone on Peers or Swarms, then send the link or let them scan the code.</source><translation>Wähle „Einladen“ auf Peers oder Schwärme. Schicke dann den Link oder lass den Code scannen.</translation></message>
<message><source>Choose a complete transformers folder.</source><translation>Wähle einen vollständigen transformers-Ordner.</translation></message>
<message><source>Choose a complete transformers model.</source><translation>Wähle ein vollständiges transformers-Modell.</translation></message>
<message><source>Choose a file of JSON lines or CSV.</source><translation>Wähle eine Datei mit JSON-Zeilen oder CSV.</translation></message>
<message><source>Choose a file.</source><translation>Wähle eine Datei.</translation></message>
<message><source>Choose a folder on another disk.</source><translation>Wähle einen Ordner auf einem anderen Datenträger.</translation></message>
<message><source>Choose a folder on the same disk.</source><translation>Wähle einen Ordner auf demselben Datenträger.</translation></message>
<message><source>Choose a model with .safetensors files.</source><translation>Wähle ein Modell mit Dateien auf .safetensors.</translation></message>
<message><source>Choose a model with a tokenizer.json.</source><translation>Wähle ein Modell mit einer tokenizer.json.</translation></message>
<message><source>Choose a new folder: nothing is ever overwritten.</source><translation>Wähle einen neuen Ordner: Nichts wird je überschrieben.</translation></message>
<message><source>Choose a plain model.</source><translation>Wähle ein schlichtes Modell.</translation></message>
<message><source>Choose a shorter path.</source><translation>Wähle einen kürzeren Pfad.</translation></message>
<message><source>Choose a smaller model, close other programs, or let Waggle use more memory in Settings.</source><translation>Wähle ein kleineres Modell, schließe andere Programme oder gib Waggle in den Optionen mehr Speicher.</translation></message>
<message><source>Choose a smaller model, or close other programs.</source><translation>Wähle ein kleineres Modell, oder schließe andere Programme.</translation></message>
<message><source>Choose a swarm</source><translation>Schwarm wählen</translation></message>
<message><source>Choose a swarm, and switch training alone off, to train with others.</source><translation>Wähle einen Schwarm und schalte das Training allein aus, um mit anderen zu trainieren.</translation></message>
<message><source>Choose again on the page Peers. The old file is kept beside it; its name begins with standings.damaged.</source><translation>Wähle noch einmal auf der Seite Peers. Die alte Datei liegt daneben; ihr Name beginnt mit standings.damaged.</translation></message>
<message><source>Choose another address or port.</source><translation>Wähle eine andere Adresse oder einen anderen Port.</translation></message>
<message><source>Choose another address.</source><translation>Wähle eine andere Adresse.</translation></message>
<message><source>Choose another language model from Hugging Face.</source><translation>Wähle ein anderes Sprachmodell von Hugging Face.</translation></message>
<message><source>Choose another language model that mlx-lm can open.</source><translation>Wähle ein anderes Sprachmodell, das mlx-lm öffnen kann.</translation></message>
<message><source>Choose another model</source><translation>Anderes Modell wählen</translation></message>
<message><source>Choose another model there first.</source><translation>Wähle dort zuerst ein anderes Modell.</translation></message>
<message><source>Choose another model, or other specialties.</source><translation>Wähle ein anderes Modell, oder andere Fachgebiete.</translation></message>
<message><source>Choose another model, or this one once more.</source><translation>Wähle ein anderes Modell oder dieses noch einmal.</translation></message>
<message><source>Choose another model.</source><translation>Wähle ein anderes Modell.</translation></message>
<message><source>Choose another moment.</source><translation>Wähle einen anderen Moment.</translation></message>
<message><source>Choose another name.</source><translation>Wähle einen anderen Namen.</translation></message>
<message><source>Choose another name: nothing is overwritten.</source><translation>Wähle einen anderen Namen: Nichts wird überschrieben.</translation></message>
<message><source>Choose another on the page Models.</source><translation>Wähle ein anderes auf der Seite Modelle.</translation></message>
<message><source>Choose another one first.</source><translation>Wähle zuerst ein anderes.</translation></message>
<message><source>Choose another one in Settings, or mend the file.</source><translation>Wähle etwas anderes in den Optionen, oder bessere die Datei aus.</translation></message>
<message><source>Choose another place.</source><translation>Wähle einen anderen Ort.</translation></message>
<message><source>Choose another revision of it.</source><translation>Wähle eine andere Revision davon.</translation></message>
<message><source>Choose another web.port, or 0: none.</source><translation>Wähle einen anderen web.port, oder 0: keinen.</translation></message>
<message><source>Choose another with --home.</source><translation>Wähle einen anderen mit --home.</translation></message>
<message><source>Choose at least one specialty, or add questions of your own.</source><translation>Wähle mindestens ein Fachgebiet oder füge eigene Fragen hinzu.</translation></message>
<message><source>Choose hours</source><translation>Stunden wählen</translation></message>
<message><source>Choose one of its specialties.</source><translation>Wähle eines seiner Fachgebiete.</translation></message>
<message><source>Choose one of them, such as %1.</source><translation>Wähle eine davon, zum Beispiel %1.</translation></message>
<message><source>Choose one of: %1.</source><translation>Wähle eines davon: %1.</translation></message>
<message><source>Choose that model again, or start afresh.</source><translation>Wähle jenes Modell wieder, oder fange neu an.</translation></message>
<message><source>Choose the model in MLX's 4-bit form, or set model.training to lora.</source><translation>Wähle das Modell in der 4-Bit-Form von MLX, oder setze model.training auf lora.</translation></message>
<message><source>Choose the model itself, or a commit of it.</source><translation>Wähle das Modell selbst oder einen Commit davon.</translation></message>
<message><source>Choose the model that it was made from.</source><translation>Wähle das Modell, aus dem es gemacht ist.</translation></message>
<message><source>Choose the model that this computer trains</source><translation>Wähle das Modell, das dieser Computer trainiert</translation></message>
<message><source>Chosen hours</source><translation>Gewählte Stunden</translation></message>
<message><source>Clear</source><translation>Leeren</translation></message>
<message><source>Clear the search</source><translation>Suche leeren</translation></message>
<message><source>Clear this conversation to compare with another moment.</source><translation>Leere dieses Gespräch, um mit einem anderen Moment zu vergleichen.</translation></message>
<message><source>Clever Wren</source><translation>Clever Wren</translation></message>
<message><source>Close Waggle</source><translation>Waggle schließen</translation></message>
<message><source>Close every double quote; write one within a text as "".</source><translation>Schließe jedes doppelte Anführungszeichen; in einem Text schreibe es als "".</translation></message>
<message><source>Close it and open it again, so that all parts fit together. What your model has learned is saved.</source><translation>Schließe es und öffne es neu, damit alle Teile zusammenpassen. Was dein Modell gelernt hat, ist gespeichert.</translation></message>
<message><source>Close it, or choose another port.</source><translation>Schließe es, oder wähle einen anderen Port.</translation></message>
<message><source>Close other programs, or lower learning.group_size.</source><translation>Schließe andere Programme, oder senke learning.group_size.</translation></message>
<message><source>Close other programs, or lower the longest answer in Settings.</source><translation>Schließe andere Programme oder verkürze in den Optionen die längste Antwort.</translation></message>
<message><source>Close other programs, or raise the limit of open files (ulimit -n).</source><translation>Schließe andere Programme, oder erhöhe die Grenze offener Dateien (ulimit -n).</translation></message>
<message><source>Close other programs, then race again.</source><translation>Schließ andere Programme, und starte den Wettlauf dann noch einmal.</translation></message>
<message><source>Close other programs, then try again.</source><translation>Schließ andere Programme und versuch es noch einmal.</translation></message>
<message><source>Close other programs.</source><translation>Schließe andere Programme.</translation></message>
<message><source>Close that window first.</source><translation>Schließe zuerst dieses Fenster.</translation></message>
<message><source>Close the other program, or choose another port (0: any free one).</source><translation>Schließe das andere Programm, oder wähle einen anderen Port (0: irgendein freier).</translation></message>
<message><source>Close the program that uses it, then try again.</source><translation>Schließe das Programm, das es benutzt, und versuche es dann noch einmal.</translation></message>
<message><source>Close the window</source><translation>Das Fenster schließen</translation></message>
<message><source>Closing; training keeps running.</source><translation>Wird geschlossen; das Training läuft weiter.</translation></message>
<message><source>Collapse guard</source><translation>Kollapsschutz</translation></message>
<message><source>Comes with Waggle</source><translation>Mitgeliefert</translation></message>
<message><source>Compare</source><translation>Vergleichen</translation></message>
<message><source>Compare models</source><translation>Modelle vergleichen</translation></message>
<message><source>Compare with training alone</source><translation>Mit Training allein vergleichen</translation></message>
<message><source>Compared with</source><translation>Verglichen mit</translation></message>
<message><source>Compared with: %1</source><translation>Verglichen mit: %1</translation></message>
<message><source>Comparing numbers</source><translation>Zahlen vergleichen</translation></message>
<message><source>Computers that train on the same questions and share their answers.</source><translation>Computer, die mit denselben Fragen trainieren und ihre Antworten teilen.</translation></message>
<message><source>Computers that train with you appear here</source><translation>Computer, die mit dir trainieren, stehen hier</translation></message>
<message><source>Computers to ask first for others. Separated by commas.</source><translation>Computer, die zuerst nach anderen gefragt werden. Durch Kommas getrennt.</translation></message>
<message><source>Computers whose network lets only the web through can take part through this one, at the same port.</source><translation>Computer, deren Netz nur das Web durchlässt, nehmen über diesen teil, am selben Port.</translation></message>
<message><source>Connect the disk again, or choose another place.</source><translation>Schließe den Datenträger wieder an, oder wähle einen anderen Ort.</translation></message>
<message><source>Connected to the swarm</source><translation>Mit dem Schwarm verbunden</translation></message>
<message><source>Connected, and at least one of you learns from the other.</source><translation>Verbunden, und mindestens einer von euch lernt vom anderen.</translation></message>
<message><source>Connecting</source><translation>Verbindet</translation></message>
<message><source>Connection</source><translation>Verbindung</translation></message>
<message><source>Connection details</source><translation>Verbindung im Einzelnen</translation></message>
<message><source>Continue</source><translation>Weiter</translation></message>
<message><source>Continue the download</source><translation>Download fortsetzen</translation></message>
<message><source>Continues %1 min after you stop using the computer.</source><translation>Geht weiter, sobald du den Computer %1 min nicht benutzt hast.</translation></message>
<message><source>Continues then, or when you resume.</source><translation>Geht dann weiter, oder wenn du fortsetzt.</translation></message>
<message><source>Continues when you resume.</source><translation>Geht weiter, wenn du fortsetzt.</translation></message>
<message><source>Continues when you resume: this computer does not tell whether you are using it.</source><translation>Geht weiter, wenn du fortsetzt: Dieser Computer verrät nicht, ob du ihn benutzt.</translation></message>
<message><source>Contribute anyway</source><translation>Trotzdem beitragen</translation></message>
<message><source>Converting %1</source><translation>%1 wird umgewandelt</translation></message>
<message><source>Converting %1: %2%</source><translation>Wandelt %1 um: %2 %</translation></message>
<message><source>Copied</source><translation>Kopiert</translation></message>
<message><source>Copy</source><translation>Kopieren</translation></message>
<message><source>Copy %1</source><translation>Kopie %1</translation></message>
<message><source>Copy %1 learned from copy %2: %3</source><translation>Kopie %1 lernte von Kopie %2: %3</translation></message>
<message><source>Copy address</source><translation>Adresse kopieren</translation></message>
<message><source>Copy it whole: `waggle ctl peers` lists them.</source><translation>Kopiere sie ganz: `waggle ctl peers` zählt sie auf.</translation></message>
<message><source>Copy link</source><translation>Link kopieren</translation></message>
<message><source>Copy or download it again, or choose another model.</source><translation>Kopiere oder lade es noch einmal, oder wähle ein anderes Modell.</translation></message>
<message><source>Copy or download it again.</source><translation>Kopiere oder lade es noch einmal.</translation></message>
<message><source>Copy or download the model again.</source><translation>Kopiere oder lade das Modell noch einmal.</translation></message>
<message><source>Copy peer id</source><translation>Peer-Kennung kopieren</translation></message>
<message><source>Copy question and answers</source><translation>Frage und Antworten kopieren</translation></message>
<message><source>Copy report</source><translation>Bericht kopieren</translation></message>
<message><source>Copy the address of the gateway %1 whole.</source><translation>Kopiere die Adresse des Gateways %1 vollständig.</translation></message>
<message><source>Copy the model to a folder of yours.</source><translation>Kopiere das Modell in einen deiner Ordner.</translation></message>
<message><source>Copy the report and send it to us.</source><translation>Kopiere den Bericht und sende ihn uns.</translation></message>
<message><source>Copy the report on the page Help and send it to us.</source><translation>Kopiere den Bericht auf der Seite Hilfe und schick ihn uns.</translation></message>
<message><source>Correct %1, or unset it.</source><translation>Berichtige %1, oder lösche die Variable.</translation></message>
<message><source>Correct it, delete the question, or choose another way to grade.</source><translation>Berichtige sie, lösche die Frage oder wähle eine andere Bewertung.</translation></message>
<message><source>Correct the file, or remove it.</source><translation>Berichtige die Datei oder entferne sie.</translation></message>
<message><source>Counting bits</source><translation>Bits zählen</translation></message>
<message><source>Counting primes</source><translation>Primzahlen zählen</translation></message>
<message><source>Course schedule</source><translation>Kursplan</translation></message>
<message><source>Create</source><translation>Anlegen</translation></message>
<message><source>Create a swarm</source><translation>Schwarm anlegen</translation></message>
<message><source>Created here</source><translation>Hier angelegt</translation></message>
<message><source>Credit for the answer tags</source><translation>Lohn für die Antwort-Tags</translation></message>
<message><source>Cryptarithm</source><translation>Buchstabenrechnung</translation></message>
<message><source>Cut the code out of it, or take a screenshot.</source><translation>Schneide den Code aus, oder mach ein Bildschirmfoto.</translation></message>
<message><source>Dark</source><translation>Dunkel</translation></message>
<message><source>Dashed: the examples that peers offer.</source><translation>Gestrichelt: die Beispiele, die Peers anbieten.</translation></message>
<message><source>Date</source><translation>Datum</translation></message>
<message><source>Day</source><translation>Tag</translation></message>
<message><source>Dec</source><translation>Dez</translation></message>
<message><source>Decimal chain sum</source><translation>Kettenrechnung mit Dezimalzahlen</translation></message>
<message><source>Decimals</source><translation>Dezimalzahlen</translation></message>
<message><source>Default: %1</source><translation>Standard: %1</translation></message>
<message><source>Delay</source><translation>Latenz</translation></message>
<message><source>Delete it in one of the two files.</source><translation>Lösche sie in einer der beiden Dateien.</translation></message>
<message><source>Delete one of the two, or make the questions different.</source><translation>Lösche eine der beiden oder mach die Fragen verschieden.</translation></message>
<message><source>Details</source><translation>Einzelheiten</translation></message>
<message><source>Details of %1</source><translation>Einzelheiten von %1</translation></message>
<message><source>Deutsch</source><translation>Deutsch</translation></message>
<message><source>Device</source><translation>Gerät</translation></message>
<message><source>Device and memory</source><translation>Gerät und Speicher</translation></message>
<message><source>Dice</source><translation>Würfel</translation></message>
<message><source>Difficulty</source><translation>Schwierigkeit</translation></message>
<message><source>Direct</source><translation>Direkt</translation></message>
<message><source>Directly</source><translation>Direkt</translation></message>
<message><source>Disk</source><translation>Festplatte</translation></message>
<message><source>Dismiss</source><translation>Ausblenden</translation></message>
<message><source>Dismiss this suggestion</source><translation>Diesen Vorschlag ausblenden</translation></message>
<message><source>Dismiss this warning</source><translation>Diese Warnung ausblenden</translation></message>
<message><source>Do not join: it was changed on the way.</source><translation>Tritt nicht bei: Sie wurde unterwegs verändert.</translation></message>
<message><source>Do not start Waggle</source><translation>Waggle nicht starten</translation></message>
<message><source>Does everything work here?</source><translation>Funktioniert hier alles?</translation></message>
<message><source>Does it ask you to log in first? Open a page in your browser.</source><translation>Verlangt es eine Anmeldung? Öffne eine Seite im Browser.</translation></message>
<message><source>Does sharing help?</source><translation>Hilft das Teilen?</translation></message>
<message><source>Does sharing help? %1</source><translation>Hilft Teilen? %1</translation></message>
<message><source>Does sharing help? See it in about two minutes</source><translation>Hilft Teilen? In etwa zwei Minuten siehst du es</translation></message>
<message><source>Does this network ask you to log in first? Open a page in your browser.</source><translation>Verlangt dieses Netz zuerst eine Anmeldung? Öffne eine Seite in deinem Browser.</translation></message>
<message><source>Done</source><translation>Fertig</translation></message>
<message><source>Doubtful</source><translation>Fraglich</translation></message>
<message><source>Download %1</source><translation>%1 laden</translation></message>
<message><source>Download and train</source><translation>Laden und trainieren</translation></message>
<message><source>Download it and choose the file, or better, choose the model it was made from: its page names it.</source><translation>Lade sie herunter und wähle die Datei, oder besser das Modell, aus dem sie gemacht wurde: Ihre Seite nennt es.</translation></message>
<message><source>Download of CUDA</source><translation>CUDA wird geladen</translation></message>
<message><source>Download of the model</source><translation>Download des Modells</translation></message>
<message><source>Downloaded models</source><translation>Geladene Modelle</translation></message>
<message><source>Downloaded models take %1; %2 are free</source><translation>Heruntergeladene Modelle belegen %1; %2 sind frei</translation></message>
<message><source>Downloading</source><translation>Wird geladen</translation></message>
<message><source>Downloading %1</source><translation>%1 wird heruntergeladen</translation></message>
<message><source>Downloading the model</source><translation>Das Modell wird heruntergeladen</translation></message>
<message><source>Downloading the model: %1, %2 left.</source><translation>Das Modell wird heruntergeladen: %1, noch %2.</translation></message>
<message><source>Downloading the model: %1.</source><translation>Das Modell wird heruntergeladen: %1.</translation></message>
<message><source>Downloading the swarm's questions: %1 of %2 parts</source><translation>Lädt die Fragen des Schwarms: %1 von %2 Teilen</translation></message>
<message><source>Dr. GRPO</source><translation>Dr. GRPO</translation></message>
<message><source>Drawing (*.svg)</source><translation>Zeichnung (*.svg)</translation></message>
<message><source>Drop it to choose this model</source><translation>Loslassen, um dieses Modell zu wählen</translation></message>
<message><source>Drop it to create a swarm</source><translation>Lass los, um einen Schwarm anzulegen</translation></message>
<message><source>Drop it to look at the invite</source><translation>Loslassen, um die Einladung anzusehen</translation></message>
<message><source>Drop your file here</source><translation>Zieh deine Datei hierher</translation></message>
<message><source>Dropped because it broke a rule: %1.</source><translation>Verworfen, weil eine Regel verletzt war: %1.</translation></message>
<message><source>Each round</source><translation>Jede Runde</translation></message>
<message><source>Earlier run, %1: %2 after %3</source><translation>Früherer Lauf, %1: %2 nach %3</translation></message>
<message><source>Earlier runs</source><translation>Frühere Läufe</translation></message>
<message><source>Easy</source><translation>Leicht</translation></message>
<message><source>Easy questions: %1</source><translation>Leichte Fragen: %1</translation></message>
<message><source>Empty</source><translation>Leer</translation></message>
<message><source>End that process, then start again.</source><translation>Beende diesen Prozess, dann starte neu.</translation></message>
<message><source>Ended</source><translation>Beendet</translation></message>
<message><source>Energy</source><translation>Energie</translation></message>
<message><source>Energy per day</source><translation>Energie pro Tag</translation></message>
<message><source>Energy today</source><translation>Energie heute</translation></message>
<message><source>English</source><translation>English</translation></message>
<message><source>Estimated</source><translation>Geschätzt</translation></message>
<message><source>Estimated from the time contributed, at %1 W now (%2).</source><translation>Geschätzt aus der beigetragenen Zeit, jetzt bei %1 W (%2).</translation></message>
<message><source>Everybody in the swarm gets the whole file with its answers. Leave out what is secret or personal.</source><translation>Alle im Schwarm bekommen die ganze Datei mit den Antworten. Lass weg, was geheim oder persönlich ist.</translation></message>
<message><source>Everything is kept.</source><translation>Alles ist gespeichert.</translation></message>
<message><source>Everything this computer has. For when you do not need it otherwise.</source><translation>Alles, was dieser Computer hat. Für Zeiten, in denen du ihn sonst nicht brauchst.</translation></message>
<message><source>Everything works.</source><translation>Alles funktioniert.</translation></message>
<message><source>Exact text</source><translation>Genauer Text</translation></message>
<message><source>Example</source><translation>Beispiel</translation></message>
<message><source>Example, recorded: it has ended</source><translation>Beispiel, aufgezeichnet: Es ist zu Ende</translation></message>
<message><source>Example: a real swarm of two, recorded</source><translation>Beispiel: ein echter Schwarm von zweien, aufgezeichnet</translation></message>
<message><source>Examples of its own from which your model learned</source><translation>Eigene Beispiele, aus denen dein Modell gelernt hat</translation></message>
<message><source>Examples of peers from which your model learned</source><translation>Beispiele von Peers, aus denen dein Modell gelernt hat</translation></message>
<message><source>Except for the starter</source><translation>Außer beim Starter</translation></message>
<message><source>Expect it to be wrong more often than right.</source><translation>Meist wird es dort noch falschliegen.</translation></message>
<message><source>Export it</source><translation>Exportieren</translation></message>
<message><source>Export it as JSON lines or CSV.</source><translation>Exportiere sie als JSON-Zeilen oder CSV.</translation></message>
<message><source>Export to a new folder</source><translation>In einen neuen Ordner exportieren</translation></message>
<message><source>Export what was learned</source><translation>Gelerntes exportieren</translation></message>
<message><source>Export without the GGUF file.</source><translation>Exportiere ohne die GGUF-Datei.</translation></message>
<message><source>Family relationships</source><translation>Verwandtschaft</translation></message>
<message><source>Feb</source><translation>Feb</translation></message>
<message><source>Feed held while a card is open. </source><translation>Steht still, solange eine Karte offen ist. </translation></message>
<message><source>Feed held while it is scrolled down. </source><translation>Steht still, solange du nach unten gescrollt hast. </translation></message>
<message><source>Feed held while the pointer is on it. </source><translation>Steht still, solange der Mauszeiger darauf liegt. </translation></message>
<message><source>Feed held while you are in it. </source><translation>Steht still, solange du darin bist. </translation></message>
<message><source>Feed held. </source><translation>Eingefroren. </translation></message>
<message><source>Fetching a question</source><translation>Eine Frage wird geholt</translation></message>
<message><source>Fields of a JSON object</source><translation>Felder eines JSON-Objekts</translation></message>
<message><source>Figures for research tools</source><translation>Zahlen für Forschungswerkzeuge</translation></message>
<message><source>Files of questions (%1)</source><translation>Dateien mit Fragen (%1)</translation></message>
<message><source>Filled hours may be used. Drag, or use the arrow keys and space.</source><translation>Farbige Stunden dürfen genutzt werden. Mit der Maus ziehen, oder Pfeiltasten und Leertaste.</translation></message>
<message><source>Find a peer</source><translation>Einen Peer suchen</translation></message>
<message><source>Find a setting</source><translation>Eine Option suchen</translation></message>
<message><source>Find a specialty</source><translation>Ein Fachgebiet suchen</translation></message>
<message><source>Find computers nearby</source><translation>Computer in der Nähe finden</translation></message>
<message><source>Find easier questions</source><translation>Leichtere Fragen suchen</translation></message>
<message><source>Find harder questions</source><translation>Schwerere Fragen suchen</translation></message>
<message><source>Find in the log</source><translation>Im Protokoll suchen</translation></message>
<message><source>Find other questions</source><translation>Andere Fragen suchen</translation></message>
<message><source>Find, in settings, models, peers and log</source><translation>Suchen, in Optionen, Modellen, Peers und Protokoll</translation></message>
<message><source>Finished</source><translation>Beendet</translation></message>
<message><source>Finishing</source><translation>Schließt ab</translation></message>
<message><source>Finishing round %1, then pausing.</source><translation>Runde %1 wird beendet, dann pausiert.</translation></message>
<message><source>Finishing this step, then closing.</source><translation>Dieser Schritt wird beendet, dann wird geschlossen.</translation></message>
<message><source>Finishing this step, then pausing.</source><translation>Dieser Schritt wird beendet, dann pausiert.</translation></message>
<message><source>Finishing this step, then waiting.</source><translation>Dieser Schritt wird beendet, dann gewartet.</translation></message>
<message><source>First light</source><translation>First light</translation></message>
<message><source>First light, the default swarm</source><translation>First light, der Standardschwarm</translation></message>
<message><source>First right answer in %1</source><translation>Erste richtige Antwort: %1</translation></message>
<message><source>First right answer: %1</source><translation>Erste richtige Antwort: %1</translation></message>
<message><source>First right answers</source><translation>Erste richtige Antworten</translation></message>
<message><source>First steps</source><translation>First steps</translation></message>
<message><source>First steps, suited to %1</source><translation>First steps, passend zu %1</translation></message>
<message><source>First, a test to see where your model starts.</source><translation>Zuerst ein Test, der zeigt, wo dein Modell anfängt.</translation></message>
<message><source>First: a backup lets you come back as who you are, here or elsewhere.</source><translation>Zuerst: Mit einer Sicherung kannst du als du selbst wiederkommen, hier oder anderswo.</translation></message>
<message><source>Fits</source><translation>Passt</translation></message>
<message><source>Fits as an adapter</source><translation>Passt als Adapter</translation></message>
<message><source>Fits, saving memory</source><translation>Passt, spart Speicher</translation></message>
<message><source>Fits: about %1 answers an hour or more, %2 of %3 GB of memory.</source><translation>Passt: etwa %1 Antworten je Stunde oder mehr, %2 von %3 GB Arbeitsspeicher.</translation></message>
<message><source>Five easier kinds of question. Anyone may join; you train alone until someone does.</source><translation>Fünf leichtere Arten von Fragen. Offen für alle; du trainierst allein, bis jemand dazukommt.</translation></message>
<message><source>Follows answer formats well, so it learns quickly.</source><translation>Hält sich gut an Antwortformen und lernt deshalb schnell.</translation></message>
<message><source>For 1 hour, until %1</source><translation>Für 1 Stunde, bis %1</translation></message>
<message><source>For a class</source><translation>Für eine Klasse</translation></message>
<message><source>For computers with more memory</source><translation>Für Computer mit mehr Arbeitsspeicher</translation></message>
<message><source>For each specialty. More make the score more certain, and the test longer.</source><translation>Je Fachgebiet. Mehr Fragen machen das Ergebnis sicherer und den Test länger.</translation></message>
<message><source>For example</source><translation>Zum Beispiel</translation></message>
<message><source>For example when training stops, or waits for you.</source><translation>Zum Beispiel, wenn das Training stehen bleibt oder auf dich wartet.</translation></message>
<message><source>For example: swarm.port=4001</source><translation>Zum Beispiel: swarm.port=4001</translation></message>
<message><source>For networks that only let the web through. Separated by commas.</source><translation>Für Netze, die nur das Web durchlassen. Durch Kommas getrennt.</translation></message>
<message><source>For saved states and models. At the limit, the oldest are deleted, but never the newest good state.</source><translation>Für gespeicherte Stände und Modelle. An der Grenze werden die ältesten gelöscht, nie aber der neueste gute Stand.</translation></message>
<message><source>For someone who can help. Names, addresses, peers and folders are left out; read it first.</source><translation>Für jemanden, der helfen kann. Namen, Adressen, Peers und Ordner sind ausgelassen; lies ihn zuerst.</translation></message>
<message><source>For the rounds from now on.</source><translation>Für die Runden von jetzt an.</translation></message>
<message><source>For the starter. Other models are tested by time, unless you change this.</source><translation>Gilt für den Starter. Andere Modelle werden nach Zeit geprüft, wenn du nichts änderst.</translation></message>
<message><source>For your account on this computer.</source><translation>Für dein Konto auf diesem Computer.</translation></message>
<message><source>Forget</source><translation>Vergessen</translation></message>
<message><source>Forget %1</source><translation>%1 vergessen</translation></message>
<message><source>Forget it for good</source><translation>Endgültig vergessen</translation></message>
<message><source>Forget its key for good</source><translation>Schlüssel endgültig vergessen</translation></message>
<message><source>Forget one first.</source><translation>Vergiss zuerst einen.</translation></message>
<message><source>Form of the question</source><translation>Form der Frage</translation></message>
<message><source>Four words that nobody would guess are good.</source><translation>Vier Wörter, die niemand errät, sind gut.</translation></message>
<message><source>Fractions</source><translation>Brüche</translation></message>
<message><source>Fri</source><translation>Fr</translation></message>
<message><source>Friday</source><translation>Freitag</translation></message>
<message><source>From Hugging Face, for every home of yours.</source><translation>Von Hugging Face, für jeden deiner Waggle-Ordner.</translation></message>
<message><source>From peers</source><translation>Von Peers</translation></message>
<message><source>From your own file. Everybody in the swarm gets it; Waggle did not check its questions and answers.</source><translation>Aus deiner eigenen Datei. Alle im Schwarm bekommen sie; Waggle hat ihre Fragen und Antworten nicht geprüft.</translation></message>
<message><source>Full</source><translation>Voll</translation></message>
<message><source>GGUF files need the package gguf, which is not installed.</source><translation>GGUF-Dateien brauchen das Paket gguf, das nicht installiert ist.</translation></message>
<message><source>GGUF has no name for %1.</source><translation>GGUF hat keinen Namen für %1.</translation></message>
<message><source>Game of Life</source><translation>Spiel des Lebens</translation></message>
<message><source>Games</source><translation>Spiele</translation></message>
<message><source>Gateway for others</source><translation>Gateway für andere</translation></message>
<message><source>Gateways</source><translation>Gateways</translation></message>
<message><source>Gather</source><translation>Sammeln</translation></message>
<message><source>Gentle first steps</source><translation>Sanfte erste Schritte</translation></message>
<message><source>Geometry</source><translation>Geometrie</translation></message>
<message><source>Get a token</source><translation>Token holen</translation></message>
<message><source>Getting both swarms ready; a few seconds</source><translation>Beide Schwärme werden vorbereitet; ein paar Sekunden</translation></message>
<message><source>Getting ready</source><translation>Vorbereitung</translation></message>
<message><source>Give it a name, and choose at least one specialty or add questions of your own.</source><translation>Gib ihm einen Namen und wähle mindestens ein Fachgebiet oder füge eigene Fragen hinzu.</translation></message>
<message><source>Give it a name.</source><translation>Gib ihm einen Namen.</translation></message>
<message><source>Give one of them an identity of its own: Start over on the page You, or `waggle identity renew`.</source><translation>Gib einem von ihnen eine eigene Identität: mit Neu anfangen auf der Seite Du, oder mit `waggle identity renew`.</translation></message>
<message><source>Go on</source><translation>Weiter laden</translation></message>
<message><source>Go to Help</source><translation>Zur Hilfe</translation></message>
<message><source>Go to Home</source><translation>Zur Startseite</translation></message>
<message><source>Go to Settings</source><translation>Zu den Optionen</translation></message>
<message><source>Go to a page</source><translation>Zu einer Seite gehen</translation></message>
<message><source>Gone</source><translation>Weg</translation></message>
<message><source>Good at arithmetic and logic for its size.</source><translation>Für seine Größe gut im Rechnen und in Logik.</translation></message>
<message><source>Good models to begin with</source><translation>Gute Modelle für den Anfang</translation></message>
<message><source>Good to know</source><translation>Gut zu wissen</translation></message>
<message><source>Goodbye, and thank you</source><translation>Auf Wiedersehen, und danke</translation></message>
<message><source>Graded as</source><translation>Bewertet als</translation></message>
<message><source>Graphs</source><translation>Graphen</translation></message>
<message><source>Greatest common divisor</source><translation>Größter gemeinsamer Teiler</translation></message>
<message><source>Greeting</source><translation>Gruß</translation></message>
<message><source>Grids</source><translation>Raster</translation></message>
<message><source>Grids in a line</source><translation>Raster in einer Zeile</translation></message>
<message><source>Half of the cores, at least one. Large programs may start a little slower.</source><translation>Die Hälfte der Kerne, mindestens einer. Große Programme starten vielleicht etwas langsamer.</translation></message>
<message><source>Half right first</source><translation>Halb richtige zuerst</translation></message>
<message><source>Hard</source><translation>Schwer</translation></message>
<message><source>Hard questions: %1</source><translation>Schwere Fragen: %1</translation></message>
<message><source>Help</source><translation>Hilfe</translation></message>
<message><source>High contrast</source><translation>Hoher Kontrast</translation></message>
<message><source>History</source><translation>Verlauf</translation></message>
<message><source>Home</source><translation>Start</translation></message>
<message><source>Home asks what to do about it, and so does `waggle status`.</source><translation>Die Startseite fragt, was geschehen soll, und ebenso `waggle status`.</translation></message>
<message><source>Hours</source><translation>Stunden</translation></message>
<message><source>How computers find each other</source><translation>Wie Computer einander finden</translation></message>
<message><source>How do I invite someone?</source><translation>Wie lade ich jemanden ein?</translation></message>
<message><source>How exactly it calculates. A lower one may be faster.</source><translation>Wie genau gerechnet wird. Eine geringere kann schneller sein.</translation></message>
<message><source>How far off an answer may be</source><translation>Wie weit eine Antwort danebenliegen darf</translation></message>
<message><source>How freely answers are tried: higher is more varied, lower more alike.</source><translation>Wie frei Antworten probiert werden: höher heißt vielfältiger, niedriger ähnlicher.</translation></message>
<message><source>How it answers</source><translation>Wie es antwortet</translation></message>
<message><source>How it learns</source><translation>Wie es lernt</translation></message>
<message><source>How many computers are there now</source><translation>Wie viele Computer gerade dort sind</translation></message>
<message><source>How many it may keep busy.</source><translation>Wie viele es beschäftigen darf.</translation></message>
<message><source>How many steps the learning rate takes to rise to its full value.</source><translation>In wie vielen Schritten die Lernrate auf ihren vollen Wert steigt.</translation></message>
<message><source>How models compare</source><translation>Modelle im Vergleich</translation></message>
<message><source>How others reach this computer</source><translation>Wie andere diesen Computer erreichen</translation></message>
<message><source>How right an answer is, from 0 to 1.</source><translation>Wie richtig eine Antwort ist, von 0 bis 1.</translation></message>
<message><source>How right and wrong answers change the model.</source><translation>Wie richtige und falsche Antworten das Modell ändern.</translation></message>
<message><source>How right its answers are in training</source><translation>Wie richtig seine Antworten im Training sind</translation></message>
<message><source>How the answers of %1 are graded</source><translation>Wie die Antworten von %1 bewertet werden</translation></message>
<message><source>How to try it</source><translation>Wie man es ausprobiert</translation></message>
<message><source>Hugging Face answered %1 when asked for %2.</source><translation>Hugging Face antwortete mit %1 auf die Frage nach %2.</translation></message>
<message><source>Hugging Face answered %1.</source><translation>Hugging Face antwortete mit %1.</translation></message>
<message><source>Hugging Face answered the search with %1.</source><translation>Hugging Face antwortete mit %1 auf die Suche.</translation></message>
<message><source>Hugging Face cannot be reached, and %1 is not fully downloaded.</source><translation>Hugging Face ist nicht zu erreichen, und %1 ist nicht vollständig heruntergeladen.</translation></message>
<message><source>Hugging Face cannot be reached.</source><translation>Hugging Face ist nicht zu erreichen.</translation></message>
<message><source>Hugging Face does not say what %1 consists of.</source><translation>Hugging Face sagt nicht, woraus %1 besteht.</translation></message>
<message><source>Hugging Face has lost a file of %1.</source><translation>Hugging Face hat eine Datei von %1 verloren.</translation></message>
<message><source>Hugging Face has no model %1.</source><translation>Hugging Face hat kein Modell %1.</translation></message>
<message><source>Hugging Face no longer has %1 as it was when its training here began.</source><translation>Hugging Face hat %1 nicht mehr so, wie es war, als sein Training hier begann.</translation></message>
<message><source>Hugging Face refuses %1 to your token</source><translation>Hugging Face verweigert deinem Token %1</translation></message>
<message><source>Hugging Face refuses %1 to your token.</source><translation>Hugging Face verweigert deinem Token %1.</translation></message>
<message><source>Hugging Face sends %1 in a form that cannot be read, or in circles.</source><translation>Hugging Face schickt %1 in unlesbarer Form oder im Kreis.</translation></message>
<message><source>I was invited</source><translation>Ich wurde eingeladen</translation></message>
<message><source>If a router blocks this computer, others relay for it.</source><translation>Blockiert ein Router diesen Computer, leiten andere für ihn weiter.</translation></message>
<message><source>If a screen reader is running, once a minute.</source><translation>Wenn ein Screenreader läuft, einmal je Minute.</translation></message>
<message><source>If it is another computer, one of the two is a copy. Give one of them an identity of its own: Start over on the page You, or `waggle identity renew`.</source><translation>Falls es ein anderer Computer ist, ist einer der beiden eine Kopie. Gib einem von ihnen eine eigene Identität: mit Neu anfangen auf der Seite Du, oder mit `waggle identity renew`.</translation></message>
<message><source>If it is this one, set it by the network. Answers that seem too old or too new are refused.</source><translation>Wenn es diese ist, stelle sie nach dem Netz. Antworten, die zu alt oder zu neu scheinen, werden abgelehnt.</translation></message>
<message><source>If this goes on, look at the page Help, or run `waggle doctor`.</source><translation>Wenn das anhält, sieh auf der Seite Hilfe nach oder führe `waggle doctor` aus.</translation></message>
<message><source>If you measured them. Otherwise Waggle estimates them, as shown under You.</source><translation>Wenn du sie gemessen hast. Sonst schätzt Waggle sie, wie unter „Du“ gezeigt.</translation></message>
<message><source>In %1</source><translation>In %1</translation></message>
<message><source>In %1 of %2 specialties, a peer was right first. Your model might have got there alone, too.</source><translation>In %1 von %2 Fachgebieten antwortete ein Peer zuerst richtig. Vielleicht hätte es dein Modell auch allein geschafft.</translation></message>
<message><source>In %1, everybody has the name of a key.</source><translation>In %1 heißen alle nach ihrem Schlüssel.</translation></message>
<message><source>In %1: %2 is no section.</source><translation>In %1: %2 ist kein Abschnitt.</translation></message>
<message><source>In %1: %2.</source><translation>In %1: %2.</translation></message>
<message><source>In a chat</source><translation>Im Chat</translation></message>
<message><source>In a chat, after an example</source><translation>Im Chat, nach einem Beispiel</translation></message>
<message><source>In a chat, answer begun</source><translation>Im Chat, Antwort begonnen</translation></message>
<message><source>In between</source><translation>Dazwischen</translation></message>
<message><source>In this window</source><translation>In diesem Fenster</translation></message>
<message><source>In training</source><translation>Im Training</translation></message>
<message><source>In your currency. The page You then shows the cost.</source><translation>In deiner Währung. Die Seite Du zeigt dann die Kosten.</translation></message>
<message><source>Install OpenSSH, then start again.</source><translation>Installiere OpenSSH und starte dann neu.</translation></message>
<message><source>Install Waggle again, or send us what stands above.</source><translation>Installiere Waggle neu, oder sende uns, was oben steht.</translation></message>
<message><source>Install Waggle again, or set computer.device to auto.</source><translation>Installiere Waggle neu, oder setze computer.device auf auto.</translation></message>
<message><source>Install Waggle again.</source><translation>Installiere Waggle neu.</translation></message>
<message><source>Install it over this one whenever you like: what Waggle learned stays.</source><translation>Installiere es über dieses, wann immer du willst: Was Waggle gelernt hat, bleibt.</translation></message>
<message><source>Install it with: %1</source><translation>Installiere es mit: %1</translation></message>
<message><source>Install the system's certificates.</source><translation>Installiere die Zertifikate des Systems.</translation></message>
<message><source>Invite</source><translation>Einladen</translation></message>
<message><source>Invite a friend</source><translation>Lade jemanden ein</translation></message>
<message><source>Invite link</source><translation>Einladungslink</translation></message>
<message><source>Invite someone</source><translation>Einladen</translation></message>
<message><source>Invite someone to %1</source><translation>Jemanden zu %1 einladen</translation></message>
<message><source>Invite someone with a link.</source><translation>Lade jemanden mit einem Link ein.</translation></message>
<message><source>Is %1 true, false or unknown? Answer with one word.</source><translation>Ist %1 wahr, falsch oder unbekannt? Antworte mit einem Wort.</translation></message>
<message><source>Is there a newer Waggle?</source><translation>Gibt es ein neueres Waggle?</translation></message>
<message><source>Isomorphic strings</source><translation>Isomorphe Zeichenketten</translation></message>
<message><source>It %1.</source><translation>%1.</translation></message>
<message><source>It already knows language. %1 to download; until it is here, Waggle trains its tiny starter.</source><translation>Es kann schon Sprache. %1 Download; bis es da ist, trainiert Waggle den winzigen Starter.</translation></message>
<message><source>It answers; nobody has announced anything just now.</source><translation>Er antwortet; gerade hat niemand etwas angekündigt.</translation></message>
<message><source>It appears here once training runs</source><translation>Sie erscheint hier, sobald das Training läuft</translation></message>
<message><source>It asks easy questions that a class can check: arithmetic, calendar, decimals, fractions, logic. Rounds are short, and the recommended model is the starter that comes with Waggle.</source><translation>Er stellt leichte Fragen, die eine Klasse prüfen kann: Rechnen, Kalender, Dezimalzahlen, Brüche, Logik. Die Runden sind kurz, und empfohlen ist das Startmodell, das Waggle mitbringt.</translation></message>
<message><source>It asks for a name and a password: write them into its address, as in http://name:password@host:port.</source><translation>Er verlangt einen Namen und ein Kennwort: Schreibe sie in seine Adresse, wie in http://name:kennwort@host:port.</translation></message>
<message><source>It began at %2.</source><translation>Am Anfang waren es %2.</translation></message>
<message><source>It began at about %2.</source><translation>Am Anfang waren es etwa %2.</translation></message>
<message><source>It begins with the words: Waggle identity.</source><translation>Sie beginnt mit den Wörtern: Waggle identity.</translation></message>
<message><source>It broke a rule (%1): it is asked again in %2.</source><translation>Er brach eine Regel (%1): In %2 wird er wieder gefragt.</translation></message>
<message><source>It can be trained.</source><translation>Trainieren lässt es sich.</translation></message>
<message><source>It can learn little from them. Settings offer a credit for the answer tags.</source><translation>Daraus kann es wenig lernen. Die Optionen bieten einen Lohn für die Antwort-Tags an.</translation></message>
<message><source>It cannot be started. Install Waggle again.</source><translation>Er lässt sich nicht starten. Installiere Waggle neu.</translation></message>
<message><source>It comes with Waggle and is open to all. It may be empty: then you train alone until you invite someone.</source><translation>Er kommt mit Waggle und ist offen für alle. Vielleicht ist er leer: Dann trainierst du allein, bis du jemanden einlädst.</translation></message>
<message><source>It continues in smaller parts, which take less memory.</source><translation>Es geht in kleineren Teilen weiter, die weniger Speicher brauchen.</translation></message>
<message><source>It continues in the previous swarm.</source><translation>Es geht im vorigen Schwarm weiter.</translation></message>
<message><source>It counts only while “Train alone” is on in Settings.</source><translation>Er gilt nur, solange „Allein trainieren“ in den Optionen an ist.</translation></message>
<message><source>It does not get this one right yet.</source><translation>Diese beantwortet es noch nicht richtig.</translation></message>
<message><source>It finds right answers, but does not mark them with the answer tag yet. It learns that first.</source><translation>Es findet richtige Antworten, markiert sie aber noch nicht mit dem Antwort-Tag. Das lernt es zuerst.</translation></message>
<message><source>It finishes its step first.</source><translation>Er beendet zuerst seinen Schritt.</translation></message>
<message><source>It found the way alone.</source><translation>Es fand den Weg allein.</translation></message>
<message><source>It gets this one right.</source><translation>Diese beantwortet es richtig.</translation></message>
<message><source>It got there by itself.</source><translation>Es kam von selbst darauf.</translation></message>
<message><source>It had learned there from %1.</source><translation>Es hatte dort von %1 gelernt.</translation></message>
<message><source>It had played %1 of %2 rounds.</source><translation>Es waren %1 von %2 Runden gespielt.</translation></message>
<message><source>It has to be downloaded again.</source><translation>Sie muss neu heruntergeladen werden.</translation></message>
<message><source>It holds %1. You would be %1 from now on, and %2 would be kept beside it. Your model and history stay.</source><translation>Sie enthält %1. Du wärst von nun an %1, und %2 würde daneben aufbewahrt. Modell und Verlauf bleiben.</translation></message>
<message><source>It is a number of rounds, 0 or more.</source><translation>Es ist eine Anzahl von Runden, 0 oder mehr.</translation></message>
<message><source>It is asked like any stranger.</source><translation>Er wird gefragt wie jeder Fremde.</translation></message>
<message><source>It is asked like any stranger: most of its examples that were tried here taught nothing.</source><translation>Er wird gefragt wie jeder Fremde: Aus den meisten seiner Beispiele, die hier versucht wurden, ließ sich nichts lernen.</translation></message>
<message><source>It is being downloaded.</source><translation>Es wird gerade heruntergeladen.</translation></message>
<message><source>It is best at %1 (%2 right).</source><translation>Am besten kann es %1 (%2 richtig).</translation></message>
<message><source>It is checked first. Until then you keep training the present one.</source><translation>Es wird zuerst geprüft. Bis dahin trainierst du das jetzige weiter.</translation></message>
<message><source>It is downloaded again.</source><translation>Es wird noch einmal geladen.</translation></message>
<message><source>It is incomplete.</source><translation>Er ist unvollständig.</translation></message>
<message><source>It is incomplete: %1.</source><translation>Er ist unvollständig: %1.</translation></message>
<message><source>It is plugged in.</source><translation>Er hängt am Strom.</translation></message>
<message><source>It is private: whoever has the link can join, and a link cannot be taken back.</source><translation>Er ist privat: Wer den Link hat, kann beitreten, und ein Link lässt sich nicht zurücknehmen.</translation></message>
<message><source>It is ready: its charter is written and its questions are agreed on. Switch to it, then invite others.</source><translation>Er ist bereit: Seine Charta ist geschrieben und seine Fragen sind vereinbart. Wechsle dorthin, dann lade andere ein.</translation></message>
<message><source>It is thinking</source><translation>Es denkt nach</translation></message>
<message><source>It is tried again by itself.</source><translation>Es wird von selbst wieder versucht.</translation></message>
<message numerus="yes"><source>It knew this before training. After %n rounds it also writes it in the required form.</source><translation><numerusform>Das wusste es schon vor dem Training. Nach %n Runde markiert es das auch als Antwort.</numerusform><numerusform>Das wusste es schon vor dem Training. Nach %n Runden markiert es das auch als Antwort.</numerusform></translation></message>
<message><source>It knows %1.</source><translation>Es kennt %1.</translation></message>
<message><source>It knows this one, but does not mark it as its answer yet.</source><translation>Es weiß das, markiert es aber noch nicht als seine Antwort.</translation></message>
<message><source>It learned from examples of peers.</source><translation>Es lernte aus Beispielen von Peers.</translation></message>
<message numerus="yes"><source>It learned this: %1 before training, right after %n rounds.</source><translation><numerusform>Das hat es gelernt: vor dem Training %1, nach %n Runde richtig.</numerusform><numerusform>Das hat es gelernt: vor dem Training %1, nach %n Runden richtig.</numerusform></translation></message>
<message><source>It learns</source><translation>Es lernt</translation></message>
<message><source>It learns from its own successes and from theirs, a little every round.</source><translation>Es lernt aus eigenen Erfolgen und aus denen der anderen, jede Runde ein wenig.</translation></message>
<message><source>It learns from the few answers that are right. Until there are some, its score stays low.</source><translation>Es lernt aus den wenigen richtigen Antworten. Bis es welche gibt, bleibt sein Ergebnis niedrig.</translation></message>
<message><source>It looks like /ip4/203.0.113.7/tcp/4001/p2p/12D3Koo...: copy it whole from the seed.</source><translation>Sie sieht so aus: /ip4/203.0.113.7/tcp/4001/p2p/12D3Koo... Kopiere sie ganz vom Startpunkt.</translation></message>
<message><source>It looks like wss://example.org/gateway.</source><translation>Sie sieht aus wie wss://example.org/gateway.</translation></message>
<message><source>It may be cut off, or hide them. Yours are put together from all gateways; add one of another operator.</source><translation>Es ist vielleicht abgeschnitten, oder es verbirgt sie. Deine werden aus allen Gateways zusammengesetzt; füge eines von einem anderen Betreiber hinzu.</translation></message>
<message><source>It may have %1 characters; fewer in some scripts.</source><translation>Er darf %1 Zeichen haben, in manchen Schriften weniger.</translation></message>
<message><source>It needs seven, Monday first, or none.</source><translation>Es braucht sieben, Montag zuerst, oder keine.</translation></message>
<message><source>It never trains on these questions.</source><translation>Mit diesen Fragen trainiert es nie.</translation></message>
<message><source>It pauses as soon as that step ends.</source><translation>Es pausiert, sobald dieser Schritt endet.</translation></message>
<message><source>It pauses once it has used %1 in a day.</source><translation>Es pausiert, sobald es an einem Tag %1 verbraucht hat.</translation></message>
<message><source>It reads PNG, JPEG, WebP, BMP and GIF.</source><translation>Waggle liest PNG, JPEG, WebP, BMP und GIF.</translation></message>
<message><source>It said nothing.</source><translation>Es sagte nichts.</translation></message>
<message><source>It said something endless.</source><translation>Es sagte etwas Endloses.</translation></message>
<message><source>It shows where your model begins, so that you see what training adds.</source><translation>Er zeigt, wo dein Modell anfängt, damit du siehst, was das Training bringt.</translation></message>
<message><source>It starts at the next login.</source><translation>Es startet bei der nächsten Anmeldung.</translation></message>
<message><source>It takes %1.</source><translation>Es belegt %1.</translation></message>
<message><source>It takes a few seconds.</source><translation>Das dauert ein paar Sekunden.</translation></message>
<message><source>It takes examples from here; none of its own has come yet.</source><translation>Er holt Beispiele von hier; von ihm kam noch keines.</translation></message>
<message><source>It tells</source><translation>Es erzählt</translation></message>
<message><source>It trains a small language model on this computer: the model answers puzzles, and a program checks the answers. Peers do the same, and all learn from each other.</source><translation>Es trainiert ein kleines Sprachmodell auf diesem Computer: Das Modell löst Rätsel, und ein Programm prüft die Antworten. Peers tun dasselbe, und alle lernen voneinander.</translation></message>
<message><source>It trains on</source><translation>Trainiert wird</translation></message>
<message><source>It tries</source><translation>Es probiert</translation></message>
<message><source>It uses %1 now. Choose Quiet, Balanced or Full on Home.</source><translation>Es nutzt jetzt %1. Wähle auf „Start“ Leise, Ausgewogen oder Voll.</translation></message>
<message><source>It uses one core at low priority; your training continues.</source><translation>Es nutzt einen Kern mit niedriger Priorität; dein Training geht weiter.</translation></message>
<message><source>It uses only part of the processor. Choose Quiet, Balanced or Full on Home.</source><translation>Es nutzt nur einen Teil des Prozessors. Wähle auf „Start“ Leise, Ausgewogen oder Voll.</translation></message>
<message><source>It uses reasoning-gym %1, this Waggle %2.</source><translation>Er benutzt reasoning-gym %1, dieses Waggle %2.</translation></message>
<message><source>It was another one.</source><translation>Es war eine andere.</translation></message>
<message><source>It was left out.</source><translation>Sie wurde ausgelassen.</translation></message>
<message><source>It was plugged in just now.</source><translation>Er wurde gerade erst eingesteckt.</translation></message>
<message><source>It was right once, and is not now.</source><translation>Einmal war es richtig, jetzt nicht mehr.</translation></message>
<message><source>It was trained only on puzzles, so it won't chat well, and it doesn't remember earlier messages.</source><translation>Es wurde nur mit Rätseln trainiert: Es chattet nicht gut und merkt sich frühere Nachrichten nicht.</translation></message>
<message><source>It works from anywhere.</source><translation>Der Link funktioniert von überall.</translation></message>
<message><source>It works on this computer only.</source><translation>Der Link funktioniert nur auf diesem Computer.</translation></message>
<message><source>Its QR code is on the screen.</source><translation>Sein QR-Code ist auf dem Bildschirm.</translation></message>
<message><source>Its answers are no numbers.</source><translation>Seine Antworten sind keine Zahlen.</translation></message>
<message><source>Its answers are on the page Live.</source><translation>Seine Antworten stehen auf der Seite Live.</translation></message>
<message><source>Its chat template cannot be used, so it is trained in plain text, without chat: %1.</source><translation>Seine Chat-Vorlage lässt sich nicht benutzen; es wird deshalb mit einfachem Text trainiert, ohne Chat: %1.</translation></message>
<message><source>Its config.json needs an eos_token_id.</source><translation>Seine config.json braucht eine eos_token_id.</translation></message>
<message><source>Its first answers appear here.</source><translation>Hier erscheinen seine ersten Antworten.</translation></message>
<message><source>Its first right answer in %1</source><translation>Seine erste richtige Antwort: %1</translation></message>
<message><source>Its licence is not accepted yet.</source><translation>Die Lizenz ist noch nicht angenommen.</translation></message>
<message><source>Its log may say why: `waggle log`.</source><translation>Vielleicht sagt ihr Protokoll, warum: `waggle log`.</translation></message>
<message><source>Its members may be off. Try again later, or ask for a newer invite.</source><translation>Vielleicht sind seine Mitglieder aus. Versuche es später noch einmal, oder bitte um eine neuere Einladung.</translation></message>
<message><source>Its questions are shown before anything starts.</source><translation>Bevor etwas beginnt, siehst du seine Fragen.</translation></message>
<message><source>Its questions had false answers, and members now agree on levels that were checked. Create it anew and send its members a new invite.</source><translation>Zu seinen Fragen gehörten falsche Antworten, und Mitglieder einigen sich jetzt auf geprüfte Stufen. Lege ihn neu an und schicke seinen Mitgliedern eine neue Einladung.</translation></message>
<message><source>Its questions had false answers, and members now agree on levels that were checked. First light continues with new questions and needs no invite.</source><translation>Zu seinen Fragen gehörten falsche Antworten, und Mitglieder einigen sich jetzt auf geprüfte Stufen. First light geht mit neuen Fragen weiter und braucht keine Einladung.</translation></message>
<message><source>Its settings changed in between, or the history lacks rounds of it.</source><translation>Seine Einstellungen änderten sich zwischendurch, oder dem Verlauf fehlen Runden davon.</translation></message>
<message><source>Its training continues.</source><translation>Sein Training geht weiter.</translation></message>
<message><source>Its tries</source><translation>Seine Versuche</translation></message>
<message><source>Its whole path on the computer that the engine runs on</source><translation>Ganzer Pfad auf dem Computer, auf dem die Engine läuft</translation></message>
<message><source>JSON lines (.jsonl) or a table (.csv): a question and its answer on each line.</source><translation>JSON-Zeilen (.jsonl) oder eine Tabelle (.csv): in jeder Zeile eine Frage und ihre Antwort.</translation></message>
<message><source>JSON objects</source><translation>JSON-Objekte</translation></message>
<message><source>Jan</source><translation>Jan</translation></message>
<message><source>Join</source><translation>Beitreten</translation></message>
<message><source>Join %1</source><translation>%1 beitreten</translation></message>
<message><source>Join with an invite</source><translation>Mit Einladung beitreten</translation></message>
<message><source>Joining the swarm</source><translation>Tritt dem Schwarm bei</translation></message>
<message><source>Judge</source><translation>Bewerten</translation></message>
<message><source>Judged again on this computer. </source><translation>Auf diesem Computer noch einmal bewertet. </translation></message>
<message><source>Jul</source><translation>Jul</translation></message>
<message><source>Jun</source><translation>Jun</translation></message>
<message><source>Kakurasu</source><translation>Kakurasu</translation></message>
<message><source>Keep everything</source><translation>Alles behalten</translation></message>
<message><source>Keep my answers here</source><translation>Meine Antworten hier behalten</translation></message>
<message><source>Keep my training</source><translation>Mein Training behalten</translation></message>
<message><source>Keep running in the menu bar when closed</source><translation>Geschlossen in der Menüleiste weiterlaufen</translation></message>
<message><source>Keep running in the tray when closed</source><translation>Geschlossen im Infobereich weiterlaufen</translation></message>
<message><source>Keep them here</source><translation>Hier behalten</translation></message>
<message><source>Keep this computer awake</source><translation>Diesen Computer wach halten</translation></message>
<message><source>Keep training</source><translation>Weiter trainieren</translation></message>
<message><source>Keep your model</source><translation>Behalte dein Modell</translation></message>
<message><source>Keeps running without this window</source><translation>Läuft ohne dieses Fenster weiter</translation></message>
<message><source>Kept awake</source><translation>Wird wach gehalten</translation></message>
<message><source>Keys</source><translation>Tasten</translation></message>
<message><source>Knights and knaves</source><translation>Ritter und Schurken</translation></message>
<message><source>Known here: %1.</source><translation>Hier bekannt: %1.</translation></message>
<message><source>Known here: %1. The folder of a node is its newest run.</source><translation>Hier bekannt: %1. Der Ordner eines Knotens steht für seinen neuesten Lauf.</translation></message>
<message><source>Language</source><translation>Sprache</translation></message>
<message><source>Largest island</source><translation>Größte Insel</translation></message>
<message><source>Last finished round: %1</source><translation>Letzte fertige Runde: %1</translation></message>
<message><source>Last test: both swarms answer new questions</source><translation>Letzter Test: beide Schwärme beantworten neue Fragen</translation></message>
<message><source>Later</source><translation>Später</translation></message>
<message><source>Latest right answer</source><translation>Neueste richtige Antwort</translation></message>
<message><source>Leaderboard</source><translation>Rangliste</translation></message>
<message><source>Lean training is not there on MLX.</source><translation>Sparsames Training gibt es auf MLX nicht.</translation></message>
<message><source>Learn</source><translation>Lernen</translation></message>
<message><source>Learn nothing from it, and give it nothing.</source><translation>Nichts von ihm lernen und ihm nichts geben.</translation></message>
<message><source>Learn nothing from it; it still gets your examples.</source><translation>Nichts von ihm lernen; er bekommt weiter deine Beispiele.</translation></message>
<message><source>Learned from others</source><translation>Von anderen gelernt</translation></message>
<message><source>Learned from you</source><translation>Lernten von dir</translation></message>
<message><source>Learning again what came after the last checkpoint: %1 of %2 rounds</source><translation>Was nach dem letzten Stand kam, wird noch einmal gelernt: %1 von %2 Runden</translation></message>
<message><source>Learning and tests</source><translation>Lernen und Tests</translation></message>
<message><source>Learning rate</source><translation>Lernrate</translation></message>
<message><source>Least common multiple</source><translation>Kleinstes gemeinsames Vielfaches</translation></message>
<message><source>Leave one of these columns out.</source><translation>Lass eine dieser Spalten weg.</translation></message>
<message><source>Leave out what follows the @, or correct it.</source><translation>Lass weg, was hinter dem @ steht, oder berichtige es.</translation></message>
<message><source>Leave some out.</source><translation>Lass einige weg.</translation></message>
<message><source>Leave some questions or columns out.</source><translation>Lass einige Fragen oder Spalten weg.</translation></message>
<message><source>Leave the others out.</source><translation>Lass die anderen weg.</translation></message>
<message><source>Leave the tolerance out, or choose the grader number.</source><translation>Lass die Toleranz weg oder wähle die Bewertung number.</translation></message>
<message><source>Leaves out unlikely words. With 1, it leaves out none.</source><translation>Lässt unwahrscheinliche Wörter weg. Mit 1 keines.</translation></message>
<message><source>Leaving?</source><translation>Du gehst?</translation></message>
<message><source>Left out: %1.</source><translation>Ausgelassen: %1.</translation></message>
<message><source>Leg counting</source><translation>Beine zählen</translation></message>
<message><source>Less than 1 Wh so far: as much as a laptop uses in about %1.</source><translation>Bisher weniger als 1 Wh: so viel, wie ein Laptop in etwa %1 braucht.</translation></message>
<message><source>Let Waggle finish a round first.</source><translation>Lass Waggle zuerst eine Runde beenden.</translation></message>
<message><source>Let Waggle use more memory in Settings.</source><translation>Gib Waggle in den Optionen mehr Speicher.</translation></message>
<message><source>Let Waggle use more of the disk in Settings, or choose a smaller model.</source><translation>Gib Waggle in den Optionen mehr Platz auf der Festplatte oder wähle ein kleineres Modell.</translation></message>
<message><source>Let your computer learn with others</source><translation>Lass deinen Computer mit anderen lernen</translation></message>
<message><source>Letter counting</source><translation>Buchstaben zählen</translation></message>
<message><source>Level so far, at %1</source><translation>Bisher gleichauf bei %1</translation></message>
<message><source>Licence: %1</source><translation>Lizenz: %1</translation></message>
<message><source>Light</source><translation>Hell</translation></message>
<message><source>Light and dark follow your system unless you choose.</source><translation>Hell und dunkel folgen deinem System, wenn du nichts wählst.</translation></message>
<message><source>Like a bee back at the hive, it shows the others what it tried.</source><translation>Wie eine Biene im Stock zeigt es den anderen, was es versucht hat.</translation></message>
<message><source>Limit for sending, and for receiving.</source><translation>Grenze fürs Senden und fürs Empfangen.</translation></message>
<message><source>List</source><translation>Liste</translation></message>
<message><source>Listen on</source><translation>Lauschen auf</translation></message>
<message><source>Live</source><translation>Live</translation></message>
<message><source>LoRA for this model needs peft, which is not installed.</source><translation>LoRA für dieses Modell braucht peft, und das ist nicht installiert.</translation></message>
<message><source>Loading</source><translation>Wird geladen</translation></message>
<message><source>Loading the model</source><translation>Das Modell wird geladen</translation></message>
<message><source>Loading your swarms.</source><translation>Deine Schwärme werden geladen.</translation></message>
<message><source>Log</source><translation>Protokoll</translation></message>
<message><source>Logic</source><translation>Logik</translation></message>
<message><source>Logs</source><translation>Protokolle</translation></message>
<message><source>Longer ones are cut off and cannot be read.</source><translation>Längere werden abgeschnitten und sind dann nicht lesbar.</translation></message>
<message><source>Longest answer</source><translation>Längste Antwort</translation></message>
<message><source>Look</source><translation>Aussehen</translation></message>
<message><source>Look at its log.</source><translation>Sieh in sein Protokoll.</translation></message>
<message><source>Look at the page Help, or run `waggle doctor`.</source><translation>Sieh auf der Seite Hilfe nach, oder rufe `waggle doctor` auf.</translation></message>
<message><source>Look at the page Help, or run `waggle doctor`. It says: %1</source><translation>Sieh auf der Seite Hilfe nach, oder rufe `waggle doctor` auf. Die Meldung: %1</translation></message>
<message><source>Look into it</source><translation>Hineinsehen</translation></message>
<message><source>Look where you got it.</source><translation>Sieh dort nach, woher du es hast.</translation></message>
<message><source>Look where you got this Waggle.</source><translation>Sieh dort nach, woher du dieses Waggle hast.</translation></message>
<message><source>Looking for a QR code in the picture.</source><translation>Im Bild wird nach einem QR-Code gesucht.</translation></message>
<message><source>Looking for earlier runs.</source><translation>Frühere Läufe werden gesucht.</translation></message>
<message><source>Looking for peers</source><translation>Peers werden gesucht</translation></message>
<message><source>Looking for peers (tried %1).</source><translation>Sucht Peers (%1 versucht).</translation></message>
<message><source>Looking for peers.</source><translation>Sucht Peers.</translation></message>
<message><source>Looking for the model</source><translation>Das Modell wird gesucht</translation></message>
<message><source>Looking up %1 on Hugging Face</source><translation>%1 wird auf Hugging Face gesucht</translation></message>
<message><source>Loss</source><translation>Verlust</translation></message>
<message><source>Low</source><translation>Niedrig</translation></message>
<message><source>Lower for larger models.</source><translation>Niedriger bei größeren Modellen.</translation></message>
<message><source>Lower learning.local or raise learning.questions.</source><translation>Senke learning.local, oder erhöhe learning.questions.</translation></message>
<message><source>Lower learning.questions, or choose another swarm.</source><translation>Senke learning.questions, oder wähle einen anderen Schwarm.</translation></message>
<message><source>Lower the learning rate</source><translation>Lernrate senken</translation></message>
<message><source>Lowest</source><translation>Sehr niedrig</translation></message>
<message><source>MLX cannot be used: %1</source><translation>MLX lässt sich nicht benutzen: %1</translation></message>
<message><source>MLX cannot be used: %1.</source><translation>MLX lässt sich nicht benutzen: %1.</translation></message>
<message><source>MLX does not put the layers of a model in 4 bits.</source><translation>MLX bringt die Schichten eines Modells nicht in 4 Bit.</translation></message>
<message><source>Made for</source><translation>Gedacht für</translation></message>
<message><source>Made for conversation on small devices.</source><translation>Gemacht für Gespräche auf kleinen Geräten.</translation></message>
<message><source>Made to be fast on ordinary processors.</source><translation>Gemacht, um auf gewöhnlichen Prozessoren schnell zu sein.</translation></message>
<message><source>Make a token with write access to it, and store it with `waggle token`.</source><translation>Mache ein Token mit Schreibrecht dafür, und hinterlege es mit `waggle token`.</translation></message>
<message><source>Make it writable; in a container, by its options. To train alone meanwhile, set swarm.solo to true.</source><translation>Mache ihn beschreibbar; in einem Container über dessen Optionen. Um bis dahin allein zu trainieren, setze swarm.solo auf true.</translation></message>
<message><source>Make one on %1.</source><translation>Erstelle eines auf %1.</translation></message>
<message><source>Make room on the disk, or ask for a larger share.</source><translation>Schaffe Platz auf dem Datenträger, oder bitte um einen größeren Anteil.</translation></message>
<message><source>Make room on the disk, or mend its rights.</source><translation>Schaffe Platz auf der Festplatte, oder berichtige die Rechte.</translation></message>
<message><source>Make room on the disk, then go on.</source><translation>Schaffe Platz auf der Festplatte, dann lade weiter.</translation></message>
<message><source>Make room on the disk.</source><translation>Schaffe Platz auf der Festplatte.</translation></message>
<message><source>Make room on the disk: what happens until then is missing in the record.</source><translation>Schaffe Platz auf dem Datenträger: Was bis dahin geschieht, fehlt in der Aufzeichnung.</translation></message>
<message><source>Make room, or choose a smaller model; %1 MB are to stay free.</source><translation>Schaffe Platz oder wähle ein kleineres Modell; %1 MB sollen frei bleiben.</translation></message>
<message><source>Make room, or choose a smaller model; %1 are to stay free.</source><translation>Schaffe Platz, oder wähle ein kleineres Modell; %1 sollen frei bleiben.</translation></message>
<message><source>Makes the run of a computer that trains alone repeatable.</source><translation>Macht den Lauf eines Computers, der allein trainiert, wiederholbar.</translation></message>
<message><source>Making its questions; a few seconds.</source><translation>Seine Fragen werden gemacht; einige Sekunden.</translation></message>
<message><source>Manipulate matrix</source><translation>Matrix verändern</translation></message>
<message><source>Mar</source><translation>Mär</translation></message>
<message><source>Mark hours in the week to start.</source><translation>Markiere Stunden in der Woche.</translation></message>
<message><source>May</source><translation>Mai</translation></message>
<message><source>May not fit: about %1 answers an hour or more, %2 of %3 GB of memory.</source><translation>Passt vielleicht nicht: etwa %1 Antworten je Stunde oder mehr, %2 von %3 GB Arbeitsspeicher.</translation></message>
<message><source>Maze</source><translation>Labyrinth</translation></message>
<message><source>Mean reward</source><translation>Ø Belohnung</translation></message>
<message><source>Means of %1 runs alone and of %2 swarms on the same specialties. Your own run may differ.</source><translation>Mittelwerte von %1 Läufen allein und %2 Schwärmen mit denselben Fachgebieten. Dein Lauf kann anders ausfallen.</translation></message>
<message><source>Meanwhile: you against the model</source><translation>Inzwischen: du gegen das Modell</translation></message>
<message><source>Measured elsewhere</source><translation>Anderswo gemessen</translation></message>
<message><source>Measured elsewhere, %1</source><translation>Anderswo gemessen, %1</translation></message>
<message><source>Measured elsewhere, %1: %2 after %3</source><translation>Anderswo gemessen, %1: %2 nach %3</translation></message>
<message><source>Members may choose the name that the class sees. It reaches members only, and everybody who can see that page.</source><translation>Mitglieder können den Namen wählen, den die Klasse sieht. Er erreicht nur Mitglieder und alle, die diese Seite sehen können.</translation></message>
<message><source>Members who have them may be off. Try again later, or ask for a newer invite.</source><translation>Mitglieder, die sie haben, sind vielleicht aus. Versuche es später noch einmal, oder bitte um eine neuere Einladung.</translation></message>
<message><source>Memory</source><translation>Arbeitsspeicher</translation></message>
<message><source>Memory is short: what usually runs together is divided into %1 parts.</source><translation>Der Speicher ist knapp: Was sonst zusammen läuft, wird in %1 Teile geteilt.</translation></message>
<message><source>Memory ran short while answering: %1 answers are written at a time from now on.</source><translation>Beim Antworten wurde der Speicher knapp: Ab jetzt werden %1 Antworten auf einmal geschrieben.</translation></message>
<message><source>Memory ran short while learning: %1 tokens are learned from at a time from now on.</source><translation>Beim Lernen wurde der Speicher knapp: Ab jetzt wird aus %1 Tokens auf einmal gelernt.</translation></message>
<message><source>Memory ran short, so the work is done in %1 parts, with the same result.</source><translation>Der Speicher wurde knapp, darum wird in %1 Teilen gearbeitet, mit demselben Ergebnis.</translation></message>
<message><source>Memory, disk and network</source><translation>Arbeitsspeicher, Festplatte und Netz</translation></message>
<message><source>Mend its rights, or choose another place.</source><translation>Berichtige die Rechte, oder wähle einen anderen Ort.</translation></message>
<message><source>Mend that line, or rename the file.</source><translation>Berichtige die Zeile, oder benenne die Datei um.</translation></message>
<message><source>Mend the links, or choose another place.</source><translation>Berichtige die Verknüpfungen, oder wähle einen anderen Ort.</translation></message>
<message><source>Mini sudoku</source><translation>Mini-Sudoku</translation></message>
<message><source>Mismatch</source><translation>Weicht ab</translation></message>
<message><source>Model</source><translation>Modell</translation></message>
<message><source>Models</source><translation>Modelle</translation></message>
<message><source>Models and saved states take %1 GB, above the limit of %2 GB: what is left is needed.</source><translation>Modelle und gespeicherte Stände belegen %1 GB, mehr als die Grenze von %2 GB: was übrig ist, wird gebraucht.</translation></message>
<message><source>Models of other computers</source><translation>Modelle anderer Computer</translation></message>
<message><source>Models of type %1 need another version of MLX.</source><translation>Modelle der Art %1 brauchen eine andere Version von MLX.</translation></message>
<message><source>Models of type %1 need torch, which is not installed.</source><translation>Modelle der Art %1 brauchen torch, und das ist nicht installiert.</translation></message>
<message><source>Models of type %1 need transformers, which is not installed.</source><translation>Modelle der Art %1 brauchen transformers, und das ist nicht installiert.</translation></message>
<message><source>Models that were quantised for MLX are trained on Macs with Apple Silicon only.</source><translation>Modelle, die für MLX quantisiert wurden, lassen sich nur auf Macs mit Apple Silicon trainieren.</translation></message>
<message><source>Modulo grid</source><translation>Modulo-Raster</translation></message>
<message><source>Mon</source><translation>Mo</translation></message>
<message><source>Monday</source><translation>Montag</translation></message>
<message><source>More</source><translation>Mehr</translation></message>
<message><source>More questions from here on</source><translation>Ab hier mehr Fragen</translation></message>
<message><source>More questions where its own answers are sometimes right, fewer where none or all of them are. Full bar: %1.</source><translation>Mehr Fragen, wo seine eigenen Antworten manchmal stimmen; weniger, wo keine oder alle stimmen. Voller Balken: %1.</translation></message>
<message><source>Mossy Badger</source><translation>Mossy Badger</translation></message>
<message><source>Mount it for writing, or choose another place.</source><translation>Binde ihn zum Schreiben ein, oder wähle einen anderen Ort.</translation></message>
<message><source>Mute</source><translation>Stummschalten</translation></message>
<message><source>Mute or block the chosen peer</source><translation>Den gewählten Peer stumm schalten oder sperren</translation></message>
<message><source>Muted</source><translation>Stumm</translation></message>
<message><source>Muting…</source><translation>Wird stumm…</translation></message>
<message><source>My model</source><translation>Mein Modell</translation></message>
<message><source>Name</source><translation>Name</translation></message>
<message><source>Name its column %1, and fill it in.</source><translation>Nenne ihre Spalte %1 und fülle sie aus.</translation></message>
<message><source>Name of the run</source><translation>Name des Laufs</translation></message>
<message><source>Name of the swarm</source><translation>Name des Schwarms</translation></message>
<message><source>Name one with --replay, or leave --screenshot out.</source><translation>Nenne einen mit --replay, oder lass --screenshot weg.</translation></message>
<message><source>Name the columns on the first line: question,answer.</source><translation>Nenne die Spalten in der ersten Zeile: question,answer.</translation></message>
<message><source>Name the gateway of a member in swarm.gateways.</source><translation>Gib das Gateway eines Mitglieds in swarm.gateways an.</translation></message>
<message><source>Names and what models write stay as they are.</source><translation>Namen und was Modelle schreiben bleiben, wie sie sind.</translation></message>
<message><source>Names can be chosen in private swarms.</source><translation>In privaten Schwärmen können Namen gewählt werden.</translation></message>
<message><source>Names look like Qwen/Qwen2.5-0.5B-Instruct; a folder is the setting model.folder.</source><translation>Namen sehen aus wie Qwen/Qwen2.5-0.5B-Instruct; ein Ordner ist die Einstellung model.folder.</translation></message>
<message><source>Names of programs, separated by commas.</source><translation>Namen von Programmen, durch Kommas getrennt.</translation></message>
<message><source>Names of specialties of the swarm, separated by commas. Empty: all of them.</source><translation>Namen von Fachgebieten des Schwarms, durch Kommas getrennt. Leer: alle.</translation></message>
<message><source>Needs a free account</source><translation>Gratis-Konto nötig</translation></message>
<message><source>Needs at least %1 GB of memory; Waggle may use %2 GB</source><translation>Braucht mindestens %1 GB Speicher; Waggle darf %2 GB nutzen</translation></message>
<message><source>Network</source><translation>Netz</translation></message>
<message><source>Network and privacy</source><translation>Netz und Privatsphäre</translation></message>
<message><source>Never</source><translation>Nie</translation></message>
<message><source>Never connects directly; uses the gateways under Connection details.</source><translation>Verbindet sich nie direkt, sondern über die Gateways unter „Verbindung im Einzelnen“.</translation></message>
<message><source>New each time</source><translation>Jedes Mal neu</translation></message>
<message><source>New identity</source><translation>Neue Identität</translation></message>
<message><source>New questions</source><translation>Neue Fragen</translation></message>
<message><source>Newer than Qwen3, and works in many languages.</source><translation>Neuer als Qwen3, und es kann viele Sprachen.</translation></message>
<message><source>Nine specialties. Anyone may join; you train alone until someone does.</source><translation>Neun Fachgebiete. Offen für alle; du trainierst allein, bis jemand dazukommt.</translation></message>
<message><source>No</source><translation>Nein</translation></message>
<message><source>No address is known yet at which others could reach you.</source><translation>Noch ist keine Adresse bekannt, unter der andere dich erreichen könnten.</translation></message>
<message><source>No answer stood out, so nothing was learned.</source><translation>Keine Antwort stach hervor, also wurde nichts gelernt.</translation></message>
<message><source>No answers are shared. You can join a swarm later.</source><translation>Es werden keine Antworten geteilt. Du kannst später einem Schwarm beitreten.</translation></message>
<message><source>No battery found.</source><translation>Kein Akku gefunden.</translation></message>
<message><source>No checkpoint is left that it follows.</source><translation>Es gibt keinen Stand mehr, auf den es folgt.</translation></message>
<message><source>No downloads; %1 are free</source><translation>Keine Downloads; %1 sind frei</translation></message>
<message><source>No engine is running for this folder.</source><translation>Für diesen Ordner läuft keine Engine.</translation></message>
<message><source>No gateway of this swarm answers.</source><translation>Kein Gateway dieses Schwarms antwortet.</translation></message>
<message><source>No limit</source><translation>Ohne Grenze</translation></message>
<message><source>No line has these words.</source><translation>Keine Zeile hat diese Wörter.</translation></message>
<message><source>No model can be run: %1.</source><translation>Es lässt sich kein Modell ausführen: %1.</translation></message>
<message><source>No model is loaded.</source><translation>Kein Modell ist geladen.</translation></message>
<message><source>No model that Waggle can train matches. Try a shorter name.</source><translation>Kein Modell, das Waggle trainieren kann, passt dazu. Versuche einen kürzeren Namen.</translation></message>
<message><source>No other model has scores on this computer.</source><translation>Kein anderes Modell hat Ergebnisse auf diesem Computer.</translation></message>
<message><source>No program fills the screen any more.</source><translation>Kein Programm füllt mehr den Bildschirm.</translation></message>
<message><source>No program fills the screen.</source><translation>Kein Programm füllt den Bildschirm.</translation></message>
<message><source>No question was found that is never trained on.</source><translation>Es fand sich keine Frage, mit der nie trainiert wird.</translation></message>
<message><source>No question was found that others take.</source><translation>Es fand sich keine Frage, die andere annehmen.</translation></message>
<message><source>No race yet</source><translation>Noch kein Wettlauf</translation></message>
<message><source>No round has been played here yet.</source><translation>Hier wurde noch keine Runde gespielt.</translation></message>
<message><source>No round is being played</source><translation>Es wird keine Runde gespielt</translation></message>
<message><source>No round yet</source><translation>Noch keine Runde</translation></message>
<message><source>No rounds for %1</source><translation>%1 lang keine Runden</translation></message>
<message><source>No score yet: it is measured before the first round and then every few rounds.</source><translation>Noch kein Wert: Er wird vor der ersten Runde gemessen, dann alle paar Runden.</translation></message>
<message><source>No seed of this swarm has its charter.</source><translation>Kein Seed dieses Schwarms hat seine Charta.</translation></message>
<message><source>No setting has these words.</source><translation>Keine Option hat diese Wörter.</translation></message>
<message><source>No state of this model has been saved yet.</source><translation>Von diesem Modell ist noch kein Stand gespeichert.</translation></message>
<message><source>No window started the engine, so none stops it. Pausing holds as ever.</source><translation>Kein Fenster hat die Engine gestartet, also hält sie keines an. Pausieren gilt wie immer.</translation></message>
<message><source>Nobody answered at its addresses just now, but it was met before. You can join, and wait for others there.</source><translation>An seinen Adressen antwortete gerade niemand, doch man traf ihn schon. Du kannst beitreten und dort auf andere warten.</translation></message>
<message><source>Nobody answers (tried %1): the others may be off, or a firewall is in the way.</source><translation>Niemand antwortet (%1 versucht): Die anderen sind vielleicht aus, oder eine Firewall steht im Weg.</translation></message>
<message><source>Nobody answers at the addresses of this invite.</source><translation>An den Adressen dieser Einladung antwortet niemand.</translation></message>
<message><source>Nobody else has them now. Try again later, or ask for a newer invite.</source><translation>Sonst hat sie gerade niemand. Versuche es später noch einmal, oder bitte um eine neuere Einladung.</translation></message>
<message><source>Nobody else is here yet</source><translation>Noch ist niemand sonst hier</translation></message>
<message><source>Nobody else is in %1 now. It needs nothing from you.</source><translation>Sonst ist gerade niemand in %1. Du musst nichts tun.</translation></message>
<message><source>Nobody else is sharing right now, so you train alone.</source><translation>Gerade teilt sonst niemand, du trainierst allein.</translation></message>
<message><source>Nobody gave the questions of %1: %2 of %3 parts are missing.</source><translation>Niemand gab die Fragen von %1: %2 von %3 Teilen fehlen.</translation></message>
<message><source>Nobody shares with you yet. Invite someone to find out.</source><translation>Noch teilt niemand mit dir. Lade jemanden ein und finde es heraus.</translation></message>
<message><source>Nobody who trains it alone publishes answers: there is nothing yet to compare this with. %1 answers.</source><translation>Niemand, der es allein trainiert, veröffentlicht Antworten: Noch fehlt der Vergleich. %1 Antworten.</translation></message>
<message><source>Nobody who trains it with peers publishes answers yet: this is alone. %1 answers.</source><translation>Noch veröffentlicht niemand Antworten, der es mit Peers trainiert: Das hier ist allein. %1 Antworten.</translation></message>
<message><source>Nobody yet</source><translation>Noch niemand</translation></message>
<message><source>None broke a rule.</source><translation>Keins mit Regelverstoß.</translation></message>
<message><source>None is right yet. It keeps trying, and learns from the first that are.</source><translation>Noch ist keine richtig. Es versucht es weiter und lernt aus den ersten richtigen.</translation></message>
<message><source>None of %1 peers matches</source><translation>Keiner von %1 Peers passt</translation></message>
<message><source>None of your chosen programs runs.</source><translation>Keines deiner gewählten Programme läuft.</translation></message>
<message><source>None of your last answers could be shared: their size or a character in them may not travel.</source><translation>Keine deiner letzten Antworten konnte geteilt werden: Ihre Länge oder ein Zeichen darin darf nicht reisen.</translation></message>
<message><source>Normal</source><translation>Normal</translation></message>
<message><source>Not accepted yet</source><translation>Nicht angenommen</translation></message>
<message><source>Not asked yet who is there.</source><translation>Noch nicht gefragt, wer dort ist.</translation></message>
<message><source>Not checked</source><translation>Nicht geprüft</translation></message>
<message><source>Not connected</source><translation>Nicht verbunden</translation></message>
<message><source>Not every disk takes sockets: choose a folder on another with --home.</source><translation>Nicht jede Platte nimmt Sockets auf: Wähle mit --home einen Ordner auf einer anderen.</translation></message>
<message><source>Not everything was removed</source><translation>Nicht alles wurde entfernt</translation></message>
<message><source>Not measured yet</source><translation>Noch nicht gemessen</translation></message>
<message><source>Not now</source><translation>Nicht jetzt</translation></message>
<message><source>Not quite: it is %1.</source><translation>Nicht ganz: Es ist %1.</translation></message>
<message><source>Not read yet</source><translation>Noch nicht gelesen</translation></message>
<message><source>Not reduced</source><translation>Normal</translation></message>
<message><source>Not saved: %1</source><translation>Nicht gespeichert: %1</translation></message>
<message><source>Not saved: %1 cannot be written</source><translation>Nicht gespeichert: %1 lässt sich nicht schreiben</translation></message>
<message><source>Not set</source><translation>Nicht angegeben</translation></message>
<message><source>Not training</source><translation>Trainiert nicht</translation></message>
<message><source>Not training.</source><translation>Trainiert nicht.</translation></message>
<message><source>Not used for learning this round.</source><translation>Diese Runde nicht zum Lernen genutzt.</translation></message>
<message><source>Not yet</source><translation>Noch nicht</translation></message>
<message><source>Nothing has been joined yet.</source><translation>Du bist noch nicht beigetreten.</translation></message>
<message><source>Nothing has happened yet.</source><translation>Noch ist nichts geschehen.</translation></message>
<message><source>Nothing has left this computer since Waggle started.</source><translation>Seit dem Start hat nichts diesen Computer verlassen.</translation></message>
<message><source>Nothing here for this choice yet.</source><translation>Für diese Wahl ist noch nichts da.</translation></message>
<message><source>Nothing is chosen; everything stays.</source><translation>Nichts ist gewählt; alles bleibt.</translation></message>
<message><source>Nothing is compared yet: take part, and your model's answers are published and compared with those of others who do.</source><translation>Noch ist nichts zu vergleichen: Nimm teil, dann werden die Antworten deines Modells veröffentlicht und mit denen anderer verglichen, die teilnehmen.</translation></message>
<message><source>Nothing is deleted.</source><translation>Nichts wird gelöscht.</translation></message>
<message><source>Nothing is holding Waggle back.</source><translation>Nichts hält Waggle auf.</translation></message>
<message><source>Nothing is saved in %1 yet.</source><translation>In %1 ist noch nichts gespeichert.</translation></message>
<message><source>Nothing is sent and nothing received.</source><translation>Nichts wird gesendet und nichts empfangen.</translation></message>
<message><source>Nothing is sent or received until training runs again.</source><translation>Nichts wird gesendet oder empfangen, bis das Training wieder läuft.</translation></message>
<message><source>Nothing is trained until you choose a swarm.</source><translation>Es wird nichts trainiert, bis du einen Schwarm wählst.</translation></message>
<message><source>Nothing is trained yet.</source><translation>Noch ist nichts trainiert.</translation></message>
<message><source>Nothing leaves this computer</source><translation>Nichts verlässt diesen Computer</translation></message>
<message><source>Nothing to learn in this round: no answer stood out.</source><translation>In dieser Runde gab es nichts zu lernen: Keine Antwort stach heraus.</translation></message>
<message><source>Nothing was changed.</source><translation>Nichts wurde verändert.</translation></message>
<message><source>Nothing was exchanged with it yet.</source><translation>Mit ihm wurde noch nichts getauscht.</translation></message>
<message><source>Nothing was learned for %1 rounds: all answers to one question were equally good.</source><translation>Seit %1 Runden wurde nichts gelernt: Alle Antworten auf eine Frage waren gleich gut.</translation></message>
<message><source>Nothing was learned for %1 rounds: hardly any answer stood in the answer tags.</source><translation>Seit %1 Runden wurde nichts gelernt: Kaum eine Antwort stand in den Antwort-Tags.</translation></message>
<message><source>Nothing was learned for %1 rounds: most answers were too long and were cut off.</source><translation>Seit %1 Runden wurde nichts gelernt: Die meisten Antworten waren zu lang und wurden abgeschnitten.</translation></message>
<message><source>Nothing was learned for %1 rounds: nearly all answers are right already.</source><translation>Seit %1 Runden wurde nichts gelernt: Fast alle Antworten sind schon richtig.</translation></message>
<message><source>Nothing was learned for %1 rounds: nearly all answers were wrong.</source><translation>Seit %1 Runden wurde nichts gelernt: Fast alle Antworten waren falsch.</translation></message>
<message><source>Nothing was learned for %1 rounds: the starter hardly uses the answer tags yet, but finds them in time.</source><translation>Seit %1 Runden wurde nichts gelernt: Der Starter benutzt die Antwort-Tags noch kaum, findet sie aber mit der Zeit von selbst.</translation></message>
<message><source>Nothing was learned for %1 rounds: the steps were left out, as their numbers were not finite.</source><translation>Seit %1 Runden wurde nichts gelernt: Die Schritte wurden ausgelassen, weil ihre Zahlen nicht endlich waren.</translation></message>
<message><source>Nothing was learned from peers yet.</source><translation>Von Peers wurde noch nichts gelernt.</translation></message>
<message><source>Nothing was learned in this round: its step was left out.</source><translation>In dieser Runde wurde nichts gelernt: Ihr Lernschritt fiel aus.</translation></message>
<message><source>Nothing was lost.</source><translation>Nichts ging verloren.</translation></message>
<message><source>Nothing was lost. Closing other programs makes room.</source><translation>Nichts ging verloren. Andere Programme zu schließen schafft Platz.</translation></message>
<message><source>Nothing was pushed.</source><translation>Es wurde nichts hochgeladen.</translation></message>
<message><source>Nothing was removed</source><translation>Nichts wurde entfernt</translation></message>
<message><source>Nothing will be lost.</source><translation>Nichts geht verloren.</translation></message>
<message><source>Nothing yet today</source><translation>Heute noch nichts</translation></message>
<message><source>Notifications</source><translation>Benachrichtigungen</translation></message>
<message><source>Nov</source><translation>Nov</translation></message>
<message><source>Now</source><translation>Jetzt</translation></message>
<message numerus="yes"><source>Now, %n rounds</source><translation><numerusform>Jetzt, %n Runde</numerusform><numerusform>Jetzt, %n Runden</numerusform></translation></message>
<message><source>Now, untrained</source><translation>Jetzt, untrainiert</translation></message>
<message><source>Number</source><translation>Zahl</translation></message>
<message><source>Number filtering</source><translation>Zahlen filtern</translation></message>
<message><source>Oct</source><translation>Okt</translation></message>
<message><source>Of %1 new questions, sharing got %2 right and alone %3.</source><translation>Von %1 neuen Fragen waren mit Teilen %2 richtig, allein %3.</translation></message>
<message><source>Of one step. Too high a rate ruins a model.</source><translation>Eines Schritts. Eine zu hohe Rate verdirbt ein Modell.</translation></message>
<message><source>Off</source><translation>Aus</translation></message>
<message><source>On</source><translation>An</translation></message>
<message><source>On %1</source><translation>Auf %1</translation></message>
<message><source>On questions your model never trains on</source><translation>Bei Fragen, mit denen dein Modell nie trainiert</translation></message>
<message><source>On the computer that the engine runs on, `waggle export FOLDER` writes it.</source><translation>Auf dem Computer, auf dem die Engine läuft, schreibt es `waggle export ORDNER`.</translation></message>
<message><source>On this computer</source><translation>Auf diesem Computer</translation></message>
<message><source>Once for each specialty.</source><translation>Einmal je Fachgebiet.</translation></message>
<message><source>One by one</source><translation>Einzeln</translation></message>
<message><source>One file, encrypted with a passphrase. Whoever has both is you. Without the passphrase nobody opens it, and there is no other way in: keep it as you keep a key.</source><translation>Eine Datei, mit einer Passphrase verschlüsselt. Wer beides hat, ist du. Ohne die Passphrase öffnet sie niemand, und einen anderen Weg gibt es nicht: Bewahre sie auf wie einen Schlüssel.</translation></message>
<message numerus="yes"><source>One hexagon for each of %n specialties</source><translation><numerusform>Ein Sechseck für %n Fachgebiet</numerusform><numerusform>Ein Sechseck für jedes der %n Fachgebiete</numerusform></translation></message>
<message><source>One kind of question, such as fractions.</source><translation>Eine Art von Aufgabe, etwa Brüche.</translation></message>
<message><source>One of several choices</source><translation>Eine von mehreren Möglichkeiten</translation></message>
<message><source>Only a marked answer counts. Otherwise, a model could list guesses until one is right.</source><translation>Nur eine markierte Antwort zählt. Sonst könnte ein Modell raten, bis etwas Richtiges dabei ist.</translation></message>
<message><source>Only a node that trains alone with a seed can: begin a new one with swarm.solo=true and learning.seed=1.</source><translation>Das geht nur bei einem Knoten, der mit einem Startwert allein trainiert: Beginne einen neuen mit swarm.solo=true und learning.seed=1.</translation></message>
<message><source>Only its members see it, beside eight characters of your key</source><translation>Nur seine Mitglieder sehen ihn, neben acht Zeichen deines Schlüssels</translation></message>
<message><source>Only numbers have a tolerance: correct the answer, delete the question, or leave the tolerance out.</source><translation>Nur Zahlen haben eine Toleranz: Berichtige die Antwort, lösche die Frage oder lass die Toleranz weg.</translation></message>
<message><source>Only these specialties</source><translation>Nur diese Fachgebiete</translation></message>
<message><source>Only this computer</source><translation>Nur dieser Computer</translation></message>
<message><source>Only while your model trains; you chose it in Settings.</source><translation>Nur während dein Modell trainiert; so steht es in deinen Optionen.</translation></message>
<message><source>Open QR picture</source><translation>QR-Bild öffnen</translation></message>
<message><source>Open Waggle</source><translation>Waggle öffnen</translation></message>
<message><source>Open a file or picture</source><translation>Datei oder Bild öffnen</translation></message>
<message><source>Open a folder</source><translation>Einen Ordner öffnen</translation></message>
<message><source>Open a picture of the QR code</source><translation>Ein Bild des QR-Codes öffnen</translation></message>
<message><source>Open an invite</source><translation>Eine Einladung öffnen</translation></message>
<message><source>Open its invite again.</source><translation>Öffne seine Einladung noch einmal.</translation></message>
<message><source>Open its invite first.</source><translation>Öffne zuerst seine Einladung.</translation></message>
<message><source>Open its page</source><translation>Seite öffnen</translation></message>
<message><source>Open or quit it here, in the menu bar.</source><translation>Öffne oder beende es hier, in der Menüleiste.</translation></message>
<message><source>Open or quit it here, in the tray.</source><translation>Öffne oder beende es hier, im Infobereich.</translation></message>
<message><source>Or set model.precision to float32.</source><translation>Oder setze model.precision auf float32.</translation></message>
<message><source>Order by</source><translation>Sortieren nach</translation></message>
<message><source>Other computers are slow to answer. Training starts even if none does.</source><translation>Andere Computer antworten langsam. Das Training beginnt auch, wenn keiner antwortet.</translation></message>
<message><source>Other programs and networks</source><translation>Andere Programme und Netze</translation></message>
<message><source>Other swarms</source><translation>Andere Schwärme</translation></message>
<message><source>Others can connect to you.</source><translation>Andere können sich mit dir verbinden.</translation></message>
<message><source>Others on your local network can then see that Waggle runs here, and in which swarm.</source><translation>Andere in deinem lokalen Netz sehen dann, dass Waggle hier läuft und in welchem Schwarm.</translation></message>
<message><source>Others on your network can also open %1</source><translation>Andere in deinem Netz können auch %1 öffnen</translation></message>
<message><source>Others see it before they join</source><translation>Andere sehen ihn, bevor sie beitreten</translation></message>
<message><source>Others see it before they join.</source><translation>Andere sehen ihn, bevor sie beitreten.</translation></message>
<message><source>Otherwise closing ends Waggle.</source><translation>Sonst beendet das Schließen Waggle.</translation></message>
<message><source>Own charts</source><translation>Eigene Kurven</translation></message>
<message><source>Own examples</source><translation>Eigene</translation></message>
<message><source>Own examples to learn from</source><translation>Eigene Beispiele zum Lernen</translation></message>
<message><source>Own questions</source><translation>Eigene Fragen</translation></message>
<message><source>Pages of a class</source><translation>Seiten einer Klasse</translation></message>
<message><source>Pages; arrow keys go up and down</source><translation>Seiten; die Pfeiltasten gehen auf und ab</translation></message>
<message><source>Palindrome generation</source><translation>Palindrome bilden</translation></message>
<message><source>Passphrase</source><translation>Passphrase</translation></message>
<message><source>Paste an address of huggingface.co, a name such as Qwen/Qwen3-0.6B, or the path of a folder.</source><translation>Füge eine Adresse von huggingface.co ein, einen Namen wie Qwen/Qwen3-0.6B oder den Pfad eines Ordners.</translation></message>
<message><source>Paste the invite link, or a picture of its QR code</source><translation>Einladungslink einfügen oder ein Bild des QR-Codes</translation></message>
<message><source>Paste the link first.</source><translation>Füge zuerst den Link ein.</translation></message>
<message><source>Paste the link, then press Start. You'll see the swarm before you join.</source><translation>Füge den Link ein und drücke Starten. Du siehst den Schwarm, bevor du beitrittst.</translation></message>
<message><source>Paths in a star</source><translation>Wege in einem Stern</translation></message>
<message><source>Patterns</source><translation>Muster</translation></message>
<message><source>Pause</source><translation>Pause</translation></message>
<message><source>Pause during full-screen apps</source><translation>Bei Vollbildprogrammen pausieren</translation></message>
<message><source>Pause for a while</source><translation>Für eine Weile pausieren</translation></message>
<message><source>Pause list</source><translation>Liste anhalten</translation></message>
<message><source>Pause now</source><translation>Jetzt pausieren</translation></message>
<message><source>Pause on battery</source><translation>Im Akkubetrieb pausieren</translation></message>
<message><source>Pause on metered networks</source><translation>In Netzen mit Datenlimit pausieren</translation></message>
<message><source>Pause until a moment instead.</source><translation>Pausiere stattdessen bis zu einer Uhrzeit.</translation></message>
<message><source>Pause when the processor is hot</source><translation>Pausieren, wenn der Prozessor heiß ist</translation></message>
<message><source>Pause whenever you like: on Home or with %1.</source><translation>Pausiere, wann du magst: auf der Startseite oder mit %1.</translation></message>
<message><source>Pause while these programs run</source><translation>Pausieren, solange diese Programme laufen</translation></message>
<message><source>Pause, or resume</source><translation>Pausieren oder fortsetzen</translation></message>
<message><source>Paused by you</source><translation>Von dir pausiert</translation></message>
<message><source>Paused until %1.</source><translation>Pausiert bis %1.</translation></message>
<message><source>Paused until you are away.</source><translation>Pausiert, bis du weg bist.</translation></message>
<message><source>Paused.</source><translation>Pausiert.</translation></message>
<message><source>Pauses above this temperature.</source><translation>Pausiert oberhalb dieser Temperatur.</translation></message>
<message><source>Pauses until midnight once it has used this much (estimated).</source><translation>Pausiert bis Mitternacht, sobald so viel verbraucht wurde (geschätzt).</translation></message>
<message><source>Pauses until nobody has touched it for this long.</source><translation>Pausiert, bis ihn so lange niemand berührt hat.</translation></message>
<message><source>Pay for the answer tags</source><translation>Antwort-Tags belohnen</translation></message>
<message><source>Peer</source><translation>Peer</translation></message>
<message><source>Peers</source><translation>Peers</translation></message>
<message><source>Peers right first</source><translation>Peers, zuerst richtig</translation></message>
<message><source>Peers' examples to learn from</source><translation>Beispiele von Peers zum Lernen</translation></message>
<message><source>Peers' examples to learn from: %1 on average</source><translation>Beispiele von Peers, aus denen zu lernen war: %1 im Mittel</translation></message>
<message><source>People join only through your link, and a link cannot be taken back.</source><translation>Man tritt nur über deinen Link bei, und ein Link lässt sich nicht zurücknehmen.</translation></message>
<message><source>Per round, if available.</source><translation>Je Runde, wenn es so viele gibt.</translation></message>
<message><source>Per round.</source><translation>Je Runde.</translation></message>
<message><source>Pick</source><translation>Auswählen</translation></message>
<message><source>Picture (*.png)</source><translation>Bild (*.png)</translation></message>
<message><source>Picture of the swarm: </source><translation>Bild des Schwarms: </translation></message>
<message><source>Piece %1 of the questions is damaged.</source><translation>Teil %1 der Fragen ist beschädigt.</translation></message>
<message><source>Place</source><translation>Platz</translation></message>
<message><source>Play again</source><translation>Noch einmal abspielen</translation></message>
<message><source>Point at a day, or use the arrow keys.</source><translation>Zeige auf einen Tag oder nimm die Pfeiltasten.</translation></message>
<message><source>Polski</source><translation>Polski</translation></message>
<message><source>Port</source><translation>Port</translation></message>
<message><source>Port %1 is already in use.</source><translation>Port %1 ist schon belegt.</translation></message>
<message><source>Port of the status page</source><translation>Port der Statusseite</translation></message>
<message><source>Power and heat</source><translation>Strom und Wärme</translation></message>
<message><source>Power function</source><translation>Potenzen</translation></message>
<message><source>Precision</source><translation>Genauigkeit</translation></message>
<message><source>Preparing the link: a few seconds.</source><translation>Der Link wird vorbereitet: ein paar Sekunden.</translation></message>
<message><source>Preparing the model</source><translation>Modell wird vorbereitet</translation></message>
<message><source>Preview</source><translation>Ansehen</translation></message>
<message><source>Preview %1</source><translation>%1 ansehen</translation></message>
<message><source>Price of a kWh</source><translation>Preis einer kWh</translation></message>
<message><source>Prime factorization</source><translation>Primfaktoren</translation></message>
<message><source>Priority</source><translation>Priorität</translation></message>
<message><source>Privacy</source><translation>Privatsphäre</translation></message>
<message><source>Private</source><translation>Privat</translation></message>
<message><source>Private, with easy questions, short rounds and a page for the projector.</source><translation>Privat, mit leichten Fragen, kurzen Runden und einer Seite für den Beamer.</translation></message>
<message><source>Private: only with your invite</source><translation>Privat: nur mit deiner Einladung</translation></message>
<message><source>Probably this one: you joined it yourself.</source><translation>Wahrscheinlich dieser: Du bist ihm selbst beigetreten.</translation></message>
<message><source>Problem</source><translation>Problem</translation></message>
<message><source>Processor</source><translation>Prozessor</translation></message>
<message><source>Processor cores</source><translation>Prozessorkerne</translation></message>
<message><source>Processors</source><translation>Prozessoren</translation></message>
<message><source>Products</source><translation>Produkte</translation></message>
<message><source>Profile</source><translation>Profil</translation></message>
<message><source>Programs to chat in, such as LM Studio and Ollama, do not know models like this one.</source><translation>Chatprogramme wie LM Studio und Ollama kennen solche Modelle nicht.</translation></message>
<message><source>Programs to chat in, such as LM Studio and Ollama, open %1 there.</source><translation>Chatprogramme wie LM Studio und Ollama öffnen dort %1.</translation></message>
<message><source>Progress</source><translation>Fortschritt</translation></message>
<message><source>Push to owner/name.</source><translation>Lade nach owner/name hoch.</translation></message>
<message><source>Put a copy of it back, or rename it to begin with the default settings.</source><translation>Lege eine Kopie von ihr zurück, oder benenne sie um, um mit den Vorgaben zu beginnen.</translation></message>
<message><source>Put a text that contains "%1" in double quotes.</source><translation>Setze einen Text mit "%1" in doppelte Anführungszeichen.</translation></message>
<message><source>Put its files back, or choose another model.</source><translation>Lege seine Dateien zurück, oder wähle ein anderes Modell.</translation></message>
<message><source>Question</source><translation>Frage</translation></message>
<message><source>Questions and answers</source><translation>Fragen und Antworten</translation></message>
<message><source>Questions and answers appear here as soon as the first round begins.</source><translation>Fragen und Antworten erscheinen hier, sobald die erste Runde beginnt.</translation></message>
<message><source>Questions and answers appear here as soon as the next round begins.</source><translation>Fragen und Antworten erscheinen hier, sobald die nächste Runde beginnt.</translation></message>
<message><source>Questions and answers appear here when training runs again.</source><translation>Fragen und Antworten erscheinen hier, wenn das Training wieder läuft.</translation></message>
<message><source>Questions and answers appear here when you resume.</source><translation>Fragen und Antworten erscheinen hier, wenn du fortsetzt.</translation></message>
<message><source>Questions answered</source><translation>Beantwortete Fragen</translation></message>
<message><source>Questions of a test</source><translation>Fragen eines Tests</translation></message>
<message><source>Questions per round</source><translation>Fragen je Runde</translation></message>
<message><source>Questions that your model never trains on: the honest test of what it learned.</source><translation>Fragen, mit denen dein Modell nie trainiert: der ehrliche Test dessen, was es gelernt hat.</translation></message>
<message><source>Quiet</source><translation>Leise</translation></message>
<message><source>Quit</source><translation>Beenden</translation></message>
<message><source>Quit; training keeps running</source><translation>Beenden; das Training läuft weiter</translation></message>
<message><source>Race again</source><translation>Noch einmal</translation></message>
<message><source>Raise it, or remove it, in Settings.</source><translation>Erhöhe oder entferne sie in den Optionen.</translation></message>
<message><source>Ransom note</source><translation>Erpresserbrief</translation></message>
<message><source>Read %1 again</source><translation>%1 noch einmal lesen</translation></message>
<message><source>Read it again</source><translation>Noch einmal lesen</translation></message>
<message><source>Read out what happened</source><translation>Vorlesen, was geschah</translation></message>
<message><source>Reading %1.</source><translation>%1 wird gelesen.</translation></message>
<message><source>Reading the picture takes too long.</source><translation>Das Bild zu lesen dauert zu lange.</translation></message>
<message><source>Reading the questions.</source><translation>Die Fragen werden gelesen.</translation></message>
<message><source>Recent weeks</source><translation>Letzte Wochen</translation></message>
<message><source>Recommended here</source><translation>Hier empfohlen</translation></message>
<message><source>Recommended model (optional)</source><translation>Empfohlenes Modell (optional)</translation></message>
<message><source>Reconnecting</source><translation>Verbindet neu</translation></message>
<message><source>Record of events</source><translation>Aufzeichnung</translation></message>
<message><source>Reduce motion</source><translation>Weniger Bewegung</translation></message>
<message><source>Reduced</source><translation>Verringert</translation></message>
<message><source>Relay</source><translation>Relais</translation></message>
<message><source>Remove</source><translation>Entfernen</translation></message>
<message><source>Remove %1</source><translation>%1 entfernen</translation></message>
<message><source>Remove %1 from this computer</source><translation>%1 von diesem Computer entfernen</translation></message>
<message><source>Remove it, or choose a folder with a shorter name with --home.</source><translation>Entferne ihn, oder wähle mit --home einen Ordner mit kürzerem Namen.</translation></message>
<message><source>Remove the one that should not be used.</source><translation>Entferne das, was nicht gelten soll.</translation></message>
<message><source>Remove them now</source><translation>Jetzt entfernen</translation></message>
<message><source>Remove these</source><translation>Diese entfernen</translation></message>
<message><source>Remove: %1, %2</source><translation>Entfernen: %1, %2</translation></message>
<message><source>Removed: %1.</source><translation>Entfernt: %1.</translation></message>
<message><source>Removing</source><translation>Wird entfernt</translation></message>
<message><source>Rename one of them, or leave it out.</source><translation>Benenne eine um oder lass sie weg.</translation></message>
<message><source>Replay of a recorded run</source><translation>Wiedergabe einer Aufzeichnung</translation></message>
<message><source>Replay of a recorded run: it has ended</source><translation>Wiedergabe einer Aufzeichnung: Sie ist zu Ende</translation></message>
<message><source>Replay successes</source><translation>Erfolge wiederholen</translation></message>
<message><source>Report</source><translation>Bericht</translation></message>
<message><source>Reset %1 to: %2</source><translation>%1 zurücksetzen auf: %2</translation></message>
<message><source>Restarting</source><translation>Startet neu</translation></message>
<message><source>Restore a backup</source><translation>Sicherung wiederherstellen</translation></message>
<message><source>Restore an identity</source><translation>Identität wiederherstellen</translation></message>
<message><source>Restore it from a copy, or with `waggle identity restore` from a backup, or move it away: Waggle then makes a new identity, which peers will not know.</source><translation>Stelle sie aus einer Kopie wieder her oder mit `waggle identity restore` aus einer Sicherung, oder verschiebe sie: Waggle macht dann eine neue Identität, die Peers nicht kennen.</translation></message>
<message><source>Restored mutes and blocks: %1. The old file is kept as %2.</source><translation>Wiederhergestellte Stummschaltungen und Sperren: %1. Die alte Datei bleibt als %2 erhalten.</translation></message>
<message><source>Result:</source><translation>Ergebnis:</translation></message>
<message><source>Results on Hugging Face for “%1”</source><translation>Ergebnisse bei Hugging Face für „%1“</translation></message>
<message><source>Results vary from race to race.</source><translation>Das Ergebnis schwankt von Rennen zu Rennen.</translation></message>
<message><source>Resume</source><translation>Fortsetzen</translation></message>
<message><source>Resume it when you like. The old file is kept as %1.</source><translation>Mach weiter, wann du möchtest. Die alte Datei bleibt als %1 erhalten.</translation></message>
<message><source>Resume list</source><translation>Liste fortsetzen</translation></message>
<message><source>Reward</source><translation>Belohnung</translation></message>
<message><source>Reward by round; the table shows the same</source><translation>Belohnung je Runde; die Tabelle zeigt dasselbe</translation></message>
<message><source>Reward by specialty</source><translation>Belohnung nach Fachgebiet</translation></message>
<message><source>Reward per answer, 0 to 1. Bold: trend. Faint: each round.</source><translation>Belohnung je Antwort, 0 bis 1. Kräftig: Trend. Blass: jede Runde.</translation></message>
<message><source>Right</source><translation>Richtig</translation></message>
<message><source>Right answer</source><translation>Richtige Antwort</translation></message>
<message><source>Right answers by round, sharing and alone</source><translation>Richtige Antworten je Runde, mit Teilen und allein</translation></message>
<message><source>Right answers by rounds of each computer's own, with the 95% interval. %1 answers.</source><translation>Richtige Antworten nach den eigenen Runden jedes Computers, mit dem 95-%-Intervall. %1 Antworten.</translation></message>
<message><source>Right answers to new questions, by round</source><translation>Richtige Antworten auf neue Fragen, nach Runde</translation></message>
<message><source>Right answers while training</source><translation>Richtige Antworten beim Training</translation></message>
<message><source>Right answers with peers and alone, by rounds</source><translation>Richtige Antworten mit Peers und allein, nach Runden</translation></message>
<message><source>Right!</source><translation>Richtig!</translation></message>
<message><source>Rotate matrix</source><translation>Matrix drehen</translation></message>
<message><source>Rotten oranges</source><translation>Faule Orangen</translation></message>
<message><source>Round</source><translation>Runde</translation></message>
<message><source>Round %1</source><translation>Runde %1</translation></message>
<message><source>Round %1 could not be saved: %2.</source><translation>Runde %1 ließ sich nicht speichern: %2.</translation></message>
<message><source>Round %1 is running. Below: earlier rounds</source><translation>Runde %1 läuft. Unten: frühere Runden</translation></message>
<message><source>Round %1 of %2</source><translation>Runde %1 von %2</translation></message>
<message><source>Round %1 taught something that is no number.</source><translation>Runde %1 lehrte etwas, das keine Zahl ist.</translation></message>
<message><source>Round %1, finished</source><translation>Runde %1, abgeschlossen</translation></message>
<message><source>Round %1: reward %2</source><translation>Runde %1: Belohnung %2</translation></message>
<message><source>Round %1: reward %2, %3 tokens in %4 s</source><translation>Runde %1: Belohnung %2, %3 Tokens in %4 s</translation></message>
<message><source>Round %1: your model is %2</source><translation>Runde %1: dein Modell %2</translation></message>
<message><source>Round %2: %1 right</source><translation>Runde %2: %1 richtig</translation></message>
<message><source>Rounds</source><translation>Runden</translation></message>
<message><source>Rounds %2 to %3: %1 right</source><translation>Runden %2 bis %3: %1 richtig</translation></message>
<message><source>Rounds between two tests</source><translation>Runden zwischen zwei Prüfungen</translation></message>
<message><source>Rounds; arrow keys go back and forth</source><translation>Runden; die Pfeiltasten blättern vor und zurück</translation></message>
<message><source>Rule: %1</source><translation>Regel: %1</translation></message>
<message><source>Run the self-test</source><translation>Selbsttest starten</translation></message>
<message><source>Runs are compared by rounds.</source><translation>Läufe werden nach Runden verglichen.</translation></message>
<message><source>Saturday</source><translation>Samstag</translation></message>
<message><source>Save</source><translation>Speichern</translation></message>
<message><source>Save a picture to share</source><translation>Bild zum Teilen speichern</translation></message>
<message><source>Save as a file</source><translation>Als Datei speichern</translation></message>
<message><source>Save it as UTF-8, or rename it.</source><translation>Speichere sie als UTF-8, oder benenne sie um.</translation></message>
<message><source>Save it as UTF-8.</source><translation>Speichere sie als UTF-8.</translation></message>
<message><source>Save progress</source><translation>Fortschritt speichern</translation></message>
<message><source>Save the file as UTF-8.</source><translation>Speichere die Datei als UTF-8.</translation></message>
<message><source>Save the file as text in UTF-8.</source><translation>Speichere die Datei als Text in UTF-8.</translation></message>
<message><source>Save the invite</source><translation>Die Einladung speichern</translation></message>
<message><source>Save the model itself, not what wraps it: model.module.save_pretrained, for example.</source><translation>Speichere das Modell selbst, nicht seine Hülle: zum Beispiel mit model.module.save_pretrained.</translation></message>
<message><source>Save the share card</source><translation>Die Karte speichern</translation></message>
<message><source>Save the table as CSV (UTF-8).</source><translation>Speichere die Tabelle als CSV (UTF-8).</translation></message>
<message><source>Save what is on this disk, and check it.</source><translation>Sichere, was auf diesem Datenträger ist, und prüfe ihn.</translation></message>
<message><source>Saved to %1</source><translation>Gespeichert in %1</translation></message>
<message><source>Saved to %1. Some older rounds are missing because the engine did not answer.</source><translation>Gespeichert unter %1. Einige ältere Runden fehlen, weil die Engine nicht geantwortet hat.</translation></message>
<message><source>Say goodbye</source><translation>Abschied nehmen</translation></message>
<message><source>Say something, and compare your model with how it was before training.</source><translation>Schreib etwas und vergleiche dein Modell mit dem Stand vor dem Training.</translation></message>
<message><source>Scales text and controls.</source><translation>Vergrößert Text und Bedienelemente.</translation></message>
<message><source>Score on new questions</source><translation>Ergebnis bei neuen Fragen</translation></message>
<message><source>Score on new questions by round; the table shows the same</source><translation>Ergebnis bei neuen Fragen nach Runde; die Tabelle zeigt dasselbe</translation></message>
<message><source>Search</source><translation>Suchen</translation></message>
<message><source>Search Hugging Face, or name a model</source><translation>Hugging Face durchsuchen oder ein Modell nennen</translation></message>
<message><source>Search, or paste a name, a huggingface.co address, a folder or a GGUF file</source><translation>Suche, oder füge einen Namen, eine huggingface.co-Adresse, einen Ordner oder eine GGUF-Datei ein</translation></message>
<message><source>Searching Hugging Face.</source><translation>Hugging Face wird durchsucht.</translation></message>
<message><source>Sections of the settings</source><translation>Abschnitte der Einstellungen</translation></message>
<message><source>See progress</source><translation>Fortschritt ansehen</translation></message>
<message><source>See swarms</source><translation>Schwärme ansehen</translation></message>
<message><source>See the steps of a round</source><translation>Schritte einer Runde ansehen</translation></message>
<message><source>See what Waggle keeps on this computer, and choose what to remove.</source><translation>Sieh, was Waggle auf diesem Computer aufbewahrt, und wähle, was entfernt wird.</translation></message>
<message><source>See what sharing does</source><translation>Sieh, was Teilen bewirkt</translation></message>
<message><source>See who was first</source><translation>Wer war zuerst?</translation></message>
<message><source>See your identity</source><translation>Deine Identität ansehen</translation></message>
<message><source>Seed</source><translation>Startwert</translation></message>
<message><source>Seen</source><translation>Zuletzt</translation></message>
<message><source>Send</source><translation>Senden</translation></message>
<message><source>Send the link, or a picture of the code. The other person needs Waggle on their computer, and sees the swarm before they join.</source><translation>Schicke den Link oder ein Bild des Codes. Die andere Person braucht Waggle auf ihrem Computer und sieht den Schwarm, bevor sie beitritt.</translation></message>
<message><source>Sep</source><translation>Sep</translation></message>
<message><source>Set</source><translation>Menge</translation></message>
<message><source>Set computer.device back to go on from it, or begin anew in a folder of its own with --home.</source><translation>Setze computer.device zurück, um damit weiterzumachen, oder beginne mit --home neu in einem eigenen Ordner.</translation></message>
<message><source>Set computer.device to auto.</source><translation>Setze computer.device auf auto.</translation></message>
<message><source>Set it aside and start</source><translation>Beiseite legen und starten</translation></message>
<message><source>Set model.folder or model.name back, or give this model a folder of its own with --home.</source><translation>Setze model.folder oder model.name zurück, oder gib diesem Modell mit --home einen eigenen Ordner.</translation></message>
<message><source>Set model.training = "%1" to go on from it, or begin anew in a folder of its own with --home.</source><translation>Setze model.training = "%1", um damit weiterzumachen, oder beginne mit --home neu in einem eigenen Ordner.</translation></message>
<message><source>Set model.training to full, to lora or to auto.</source><translation>Setze model.training auf full, auf lora oder auf auto.</translation></message>
<message><source>Set model.training to full.</source><translation>Setze model.training auf full.</translation></message>
<message><source>Set model.training to lean.</source><translation>Setze model.training auf lean.</translation></message>
<message><source>Set model.training to lora, or to auto.</source><translation>Setze model.training auf lora oder auf auto.</translation></message>
<message><source>Set model.training to lora.</source><translation>Setze model.training auf lora.</translation></message>
<message><source>Set swarm.lan to false.</source><translation>Setze swarm.lan auf false.</translation></message>
<message><source>Set the clock by the network: answers that seem too old or too new are refused by others.</source><translation>Stelle die Uhr nach dem Netz: Antworten, die zu alt oder zu neu scheinen, lehnen andere ab.</translation></message>
<message><source>Set your own watts, a price and a daily limit in Settings.</source><translation>Eigene Watt, einen Preis und eine Grenze pro Tag wählst du in den Optionen.</translation></message>
<message><source>Sets the processors below and the conditions under When to train.</source><translation>Setzt die Prozessoren unten und die Bedingungen unter „Wann trainiert wird“.</translation></message>
<message><source>Settings</source><translation>Optionen</translation></message>
<message><source>Settings of the command line were left out: the engine runs already.</source><translation>Einstellungen der Befehlszeile wurden ausgelassen: Die Engine läuft schon.</translation></message>
<message><source>Settings offers to use your NVIDIA card</source><translation>Unter Optionen lässt sich deine NVIDIA-Karte nutzen</translation></message>
<message><source>Share</source><translation>Teilen</translation></message>
<message><source>Share my answers</source><translation>Meine Antworten teilen</translation></message>
<message><source>Share of the graphics processor</source><translation>Anteil des Grafikprozessors</translation></message>
<message><source>Share of the processor's time</source><translation>Anteil der Prozessorzeit</translation></message>
<message><source>Share of the questions by specialty</source><translation>Anteil an den Fragen je Fachgebiet</translation></message>
<message><source>Share your answers from now on? Other models learn from them. Everybody in the swarm can read them, labelled as human, and they cannot be taken back.</source><translation>Deine Antworten ab jetzt teilen? Andere Modelle lernen daraus. Alle im Schwarm können sie lesen, als menschlich gekennzeichnet, und sie lassen sich nicht zurücknehmen.</translation></message>
<message><source>Shared</source><translation>Geteilt</translation></message>
<message><source>Shared with the swarm</source><translation>Mit dem Schwarm geteilt</translation></message>
<message><source>Sharing</source><translation>Teilt</translation></message>
<message><source>Sharing leads, %1 to %2</source><translation>Teilen führt, %1 zu %2</translation></message>
<message><source>Sharing needs two. An invite is a link or a QR code, and costs nothing.</source><translation>Zum Teilen braucht es zwei. Eine Einladung ist ein Link oder ein QR-Code und kostet nichts.</translation></message>
<message><source>Sharing strategy</source><translation>Austauschstrategie</translation></message>
<message><source>Sharing won, %1 to %2</source><translation>Teilen hat gewonnen, %1 zu %2</translation></message>
<message><source>Shorten it, or leave it out.</source><translation>Kürze sie oder lass sie weg.</translation></message>
<message><source>Shorten it.</source><translation>Kürze sie.</translation></message>
<message><source>Shorten the lists in them.</source><translation>Kürze die Listen darin.</translation></message>
<message><source>Shorten them, or choose another model.</source><translation>Kürze sie oder wähle ein anderes Modell.</translation></message>
<message><source>Shorter answers can travel: lower the longest answer in Settings.</source><translation>Kürzere Antworten können reisen: Verkürze in den Optionen die längste Antwort.</translation></message>
<message><source>Shortest path</source><translation>Kürzester Weg</translation></message>
<message><source>Show all</source><translation>Alle zeigen</translation></message>
<message><source>Show answers</source><translation>Antworten zeigen</translation></message>
<message><source>Show as calendar</source><translation>Als Kalender zeigen</translation></message>
<message><source>Show as charts</source><translation>Als Diagramme zeigen</translation></message>
<message><source>Show as table</source><translation>Als Tabelle zeigen</translation></message>
<message><source>Show full answers</source><translation>Ganze Antworten zeigen</translation></message>
<message><source>Show it on a projector</source><translation>Am Projektor zeigen</translation></message>
<message><source>Show less</source><translation>Weniger zeigen</translation></message>
<message><source>Show question</source><translation>Frage zeigen</translation></message>
<message><source>Show the last ten messages</source><translation>Die letzten zehn Nachrichten zeigen</translation></message>
<message><source>Show the whole run</source><translation>Ganzen Lauf zeigen</translation></message>
<message><source>Show them</source><translation>Zeigen</translation></message>
<message><source>Shown once Waggle has started.</source><translation>Steht hier, sobald Waggle gestartet ist.</translation></message>
<message><source>Simple geometry</source><translation>Einfache Geometrie</translation></message>
<message><source>Simplify the fraction 12/18.</source><translation>Kürze den Bruch 12/18.</translation></message>
<message><source>Size not known yet</source><translation>Größe noch unbekannt</translation></message>
<message><source>Skip set-up</source><translation>Einrichtung überspringen</translation></message>
<message><source>Sleep</source><translation>Ruhezustand</translation></message>
<message><source>Small language models</source><translation>Kleine Sprachmodelle</translation></message>
<message><source>Small language models learn more in %1, a swarm with easier questions that comes with Waggle.</source><translation>Kleine Sprachmodelle lernen mehr in %1, einem mitgelieferten Schwarm mit leichteren Fragen.</translation></message>
<message><source>Small models that learn well. Waggle downloads nothing until you say so.</source><translation>Kleine Modelle, die gut lernen. Waggle lädt nichts herunter, bevor du es sagst.</translation></message>
<message><source>Small, and meant to be taught a single task.</source><translation>Klein und dafür gemacht, eine einzige Aufgabe zu lernen.</translation></message>
<message><source>SmolLM2-135M on one graphics card</source><translation>SmolLM2-135M auf einer Grafikkarte</translation></message>
<message><source>So it is not used.</source><translation>Darum wird die Datei nicht benutzt.</translation></message>
<message><source>So it learns the form first: an answer that can be read earns a little, even if it is wrong.</source><translation>Deshalb lernt es zuerst die Form: Eine lesbare Antwort verdient ein wenig, auch wenn sie falsch ist.</translation></message>
<message><source>Some network disks have no locks or cannot flush: choose a folder on a local disk.</source><translation>Manche Netzlaufwerke kennen keine Sperren oder kein sicheres Schreiben: Wähle einen Ordner auf einem Datenträger dieses Computers.</translation></message>
<message><source>Some network disks lack them: choose a folder on a local disk with --home.</source><translation>Manchen Netzlaufwerken fehlen sie: Wähle mit --home einen Ordner auf einem Datenträger dieses Computers.</translation></message>
<message><source>Some tries are right. It learns from what sets them apart from the others.</source><translation>Einige Versuche sind richtig. Es lernt daraus, was sie von den anderen unterscheidet.</translation></message>
<message><source>Something between Hugging Face and this computer changes files. Try again from another network.</source><translation>Etwas zwischen Hugging Face und diesem Computer verändert Dateien. Versuche es aus einem anderen Netz noch einmal.</translation></message>
<message><source>Something in the window went wrong: %1</source><translation>Im Fenster ging etwas schief: %1</translation></message>
<message><source>Something on the way changes files. Try another network.</source><translation>Etwas unterwegs verändert Dateien. Versuche es in einem anderen Netz.</translation></message>
<message><source>Something on the way changes files. Try another network. What was downloaded is kept.</source><translation>Etwas unterwegs verändert Dateien. Versuche es in einem anderen Netz. Was schon geladen ist, bleibt.</translation></message>
<message><source>Something went wrong.</source><translation>Etwas ging schief.</translation></message>
<message><source>Specialties</source><translation>Fachgebiete</translation></message>
<message><source>Specialty</source><translation>Fachgebiet</translation></message>
<message><source>Spell backward</source><translation>Rückwärts buchstabieren</translation></message>
<message><source>Stage held while it is scrolled down. </source><translation>Steht still, solange du nach unten gescrollt hast. </translation></message>
<message><source>Stage held while the pointer is on it. </source><translation>Steht still, solange der Mauszeiger darauf liegt. </translation></message>
<message><source>Stage held while the whole question is open. </source><translation>Steht still, solange die ganze Frage offen ist. </translation></message>
<message><source>Stage held while you are in it. </source><translation>Steht still, solange du darin bist. </translation></message>
<message><source>Standard</source><translation>Üblich</translation></message>
<message><source>Standard questions: %1</source><translation>Übliche Fragen: %1</translation></message>
<message><source>Standing</source><translation>Ruf</translation></message>
<message><source>Start</source><translation>Starten</translation></message>
<message><source>Start a race</source><translation>Wettlauf starten</translation></message>
<message><source>Start another one with `run`.</source><translation>Starte eine andere mit `run`.</translation></message>
<message><source>Start it, correct its address, or use none.</source><translation>Starte ihn, berichtige seine Adresse, oder verwende keinen.</translation></message>
<message><source>Start one with `waggle engine`.</source><translation>Starte eine mit `waggle engine`.</translation></message>
<message><source>Start over</source><translation>Neu anfangen</translation></message>
<message><source>Start over, or choose another model.</source><translation>Fang neu an oder wähle ein anderes Modell.</translation></message>
<message><source>Start the race</source><translation>Wettlauf starten</translation></message>
<message><source>Start when I log in</source><translation>Beim Anmelden starten</translation></message>
<message><source>Starter</source><translation>Starter</translation></message>
<message><source>Starting Waggle.</source><translation>Waggle wird gestartet.</translation></message>
<message><source>Starting and closing</source><translation>Starten und Schließen</translation></message>
<message><source>Starting points</source><translation>Erste Anlaufstellen</translation></message>
<message><source>Starting the answer checker</source><translation>Die Antwortprüfung startet</translation></message>
<message><source>Starting the answer checker. It gets on slowly, because this computer is busy or its disk is slow</source><translation>Die Antwortprüfung startet. Sie kommt langsam voran, weil dieser Computer beschäftigt oder seine Festplatte langsam ist</translation></message>
<message><source>Starting up. The link is checked in a moment.</source><translation>Startet noch. Der Link wird gleich geprüft.</translation></message>
<message><source>Starts %1 at %2.</source><translation>Beginnt %1 um %2.</translation></message>
<message><source>Starts %1 min after you stop.</source><translation>Beginnt %1 min, nachdem du aufhörst.</translation></message>
<message><source>Starts after midnight.</source><translation>Beginnt nach Mitternacht.</translation></message>
<message><source>Starts at %1.</source><translation>Beginnt um %1.</translation></message>
<message><source>Starts below %1 °C.</source><translation>Beginnt unter %1 °C.</translation></message>
<message><source>Starts on a network that is not.</source><translation>Beginnt in einem Netz, das es nicht ist.</translation></message>
<message><source>Starts when it does not any more.</source><translation>Beginnt, wenn es das nicht mehr tut.</translation></message>
<message><source>Starts when it is closed.</source><translation>Beginnt, wenn es geschlossen ist.</translation></message>
<message><source>Starts when you plug it in.</source><translation>Beginnt, wenn du ihn ansteckst.</translation></message>
<message><source>Starts within a minute, if it stays so.</source><translation>Beginnt in einer Minute, wenn es so bleibt.</translation></message>
<message><source>Statements about themselves</source><translation>Aussagen über sich selbst</translation></message>
<message><source>Status page and gateway</source><translation>Statusseite und Gateway</translation></message>
<message><source>Stay here</source><translation>Bleiben hier</translation></message>
<message><source>Stay in the menu bar when closed</source><translation>Geschlossen in der Menüleiste bleiben</translation></message>
<message><source>Stay in the tray when closed</source><translation>Geschlossen im Infobereich bleiben</translation></message>
<message><source>Stays here</source><translation>Bleibt hier</translation></message>
<message><source>Stays on this computer</source><translation>Bleibt auf diesem Computer</translation></message>
<message><source>Step %1 of %2</source><translation>Schritt %1 von %2</translation></message>
<message><source>Steps per round</source><translation>Schritte je Runde</translation></message>
<message><source>Stop</source><translation>Stopp</translation></message>
<message><source>Stop it (an engine with `waggle ctl stop`), or use another --home.</source><translation>Halte sie an (eine Engine mit `waggle ctl stop`), oder nimm ein anderes --home.</translation></message>
<message><source>Stop it with `waggle stop`, or use another folder.</source><translation>Halte sie mit `waggle stop` an, oder nimm einen anderen Ordner.</translation></message>
<message><source>Stop taking part</source><translation>Nicht mehr teilnehmen</translation></message>
<message><source>Stopped</source><translation>Angehalten</translation></message>
<message numerus="yes"><source>Stopped after %n rounds; a verdict needs a whole race</source><translation><numerusform>Nach %n Runde gestoppt; ein Urteil braucht einen ganzen Wettlauf</numerusform><numerusform>Nach %n Runden gestoppt; ein Urteil braucht einen ganzen Wettlauf</numerusform></translation></message>
<message><source>Stopped at: %1</source><translation>Angehalten bei: %1</translation></message>
<message><source>Stopping training</source><translation>Das Training wird angehalten</translation></message>
<message><source>Store one that may read it with `waggle token`.</source><translation>Hinterlege mit `waggle token` eines, das es lesen darf.</translation></message>
<message><source>Stored in this computer's keychain, sent only to Hugging Face, and never shown again.</source><translation>Es liegt im Schlüsselbund dieses Computers, geht nur an Hugging Face und wird nie wieder angezeigt.</translation></message>
<message><source>Strong and fully open; best with a graphics card.</source><translation>Stark und ganz offen; am besten mit einer Grafikkarte.</translation></message>
<message><source>Successes only</source><translation>Nur Erfolge</translation></message>
<message><source>Such as games, films or presentations.</source><translation>Etwa bei Spielen, Filmen oder Vorträgen.</translation></message>
<message><source>Sudoku</source><translation>Sudoku</translation></message>
<message><source>Sums</source><translation>Summen</translation></message>
<message><source>Sunday</source><translation>Sonntag</translation></message>
<message><source>Survo</source><translation>Survo</translation></message>
<message><source>Swarm</source><translation>Schwarm</translation></message>
<message><source>Swarms</source><translation>Schwärme</translation></message>
<message><source>Swarms and peers</source><translation>Schwärme und Peers</translation></message>
<message><source>Swarms that you know have ended.</source><translation>Schwärme, die du kennst, sind beendet.</translation></message>
<message><source>Swarms you know, the keys of private ones, and what you think of peers.</source><translation>Schwärme, die du kennst, Schlüssel der privaten, und was du von Peers hältst.</translation></message>
<message><source>Switch to %1</source><translation>Zu %1 wechseln</translation></message>
<message><source>Switching from %1 takes a few seconds. Your model keeps what it learned and goes on with round %2.</source><translation>Der Wechsel von %1 dauert ein paar Sekunden. Dein Modell behält, was es gelernt hat, und macht mit Runde %2 weiter.</translation></message>
<message><source>Syllogism</source><translation>Syllogismus</translation></message>
<message><source>System default</source><translation>Wie das System</translation></message>
<message><source>System default (off)</source><translation>Systemstandard (aus)</translation></message>
<message><source>Table</source><translation>Tabelle</translation></message>
<message><source>Table (*.csv)</source><translation>Tabelle (*.csv)</translation></message>
<message><source>Take a screenshot of the code.</source><translation>Mach ein Bildschirmfoto des Codes.</translation></message>
<message><source>Take another copy of the backup, if there is one.</source><translation>Nimm eine andere Kopie der Sicherung, falls es eine gibt.</translation></message>
<message><source>Take part</source><translation>Teilnehmen</translation></message>
<message><source>Take the address of another seed.</source><translation>Nimm die Adresse eines anderen Seeds.</translation></message>
<message><source>Take the picture again: the whole code, straight from the front, sharp, without reflections.</source><translation>Mach das Bild noch einmal: den ganzen Code, gerade von vorn, scharf und ohne Spiegelungen.</translation></message>
<message numerus="yes"><source>Take your %n rounds along to the new version, or start over from it.</source><translation><numerusform>Nimm deine %n Runde in die neue Fassung mit, oder fang mit ihr neu an.</numerusform><numerusform>Nimm deine %n Runden in die neue Fassung mit, oder fang mit ihr neu an.</numerusform></translation></message>
<message><source>Takes under a minute</source><translation>Dauert keine Minute</translation></message>
<message><source>Tall Juniper</source><translation>Tall Juniper</translation></message>
<message><source>Temperature</source><translation>Temperatur</translation></message>
<message><source>Test score</source><translation>Test</translation></message>
<message><source>Testing</source><translation>Test</translation></message>
<message><source>Testing. This takes about half a minute.</source><translation>Test läuft. Das dauert etwa eine halbe Minute.</translation></message>
<message><source>Tests</source><translation>Tests</translation></message>
<message><source>Text size</source><translation>Schriftgröße</translation></message>
<message><source>That is not a Hugging Face token.</source><translation>Das ist kein Hugging-Face-Token.</translation></message>
<message><source>The %1 of the model in %2 cannot be read: %3.</source><translation>Ein Teil des Modells in %2 (%1) lässt sich nicht lesen: %3.</translation></message>
<message><source>The %1 of the model in %2 ends the program that reads it: %3.</source><translation>Ein Teil des Modells in %2 (%1) beendet das Programm, das ihn liest: %3.</translation></message>
<message><source>The %1 of the model in %2 makes its reader talk nonsense.</source><translation>Ein Teil des Modells in %2 (%1) bringt das Programm durcheinander, das ihn liest.</translation></message>
<message><source>The %1 of the model in %2 takes too long to read.</source><translation>Einen Teil des Modells in %2 (%1) zu lesen dauert zu lange.</translation></message>
<message><source>The %1 of the model in %2 takes too much memory to read.</source><translation>Einen Teil des Modells in %2 (%1) zu lesen braucht zu viel Speicher.</translation></message>
<message><source>The QR code in that picture is no invite.</source><translation>Der QR-Code in diesem Bild ist keine Einladung.</translation></message>
<message><source>The address of the list of versions is not https.</source><translation>Die Adresse der Liste der Versionen ist nicht https.</translation></message>
<message><source>The answer cannot be stored: %1.</source><translation>Die Antwort lässt sich nicht speichern: %1.</translation></message>
<message><source>The answers of all saved states are no numbers.</source><translation>Die Antworten aller gespeicherten Stände sind keine Zahlen.</translation></message>
<message><source>The backup that was written does not open.</source><translation>Die geschriebene Sicherung lässt sich nicht öffnen.</translation></message>
<message><source>The certificates of this computer cannot be read: %1.</source><translation>Die Zertifikate dieses Computers lassen sich nicht lesen: %1.</translation></message>
<message><source>The charter %1 cannot be opened.</source><translation>Die Charta %1 lässt sich nicht öffnen.</translation></message>
<message><source>The charter %1 cannot be opened: %2.</source><translation>Die Charta %1 lässt sich nicht öffnen: %2.</translation></message>
<message><source>The charter %1 is no text in UTF-8.</source><translation>Die Charta %1 ist kein Text in UTF-8.</translation></message>
<message><source>The charter cannot be kept: %1.</source><translation>Die Charta lässt sich nicht speichern: %1.</translation></message>
<message><source>The charter of %1 has no specialty %2.</source><translation>Die Charta von %1 hat kein Fachgebiet %2.</translation></message>
<message><source>The charts appear here once training runs.</source><translation>Die Diagramme erscheinen hier, sobald das Training läuft.</translation></message>
<message><source>The chat template in %1 cannot be read now: %2.</source><translation>Die Chat-Vorlage in %1 lässt sich gerade nicht lesen: %2.</translation></message>
<message><source>The chat template in %1 cannot be used: %2.</source><translation>Die Chat-Vorlage in %1 lässt sich nicht benutzen: %2.</translation></message>
<message><source>The chat template of this model changed since it was trained last.</source><translation>Die Chat-Vorlage dieses Modells hat sich seit seinem letzten Training geändert.</translation></message>
<message><source>The check failed:</source><translation>Die Prüfung ist fehlgeschlagen:</translation></message>
<message><source>The checkpoints before are kept. Make room on the disk.</source><translation>Die Stände davor sind gespeichert. Schaffe Platz auf der Festplatte.</translation></message>
<message><source>The choice cannot be kept: %1.</source><translation>Die Wahl lässt sich nicht speichern: %1.</translation></message>
<message><source>The chosen model is the one that was trained here.</source><translation>Das gewählte Modell ist das, das hier trainiert wurde.</translation></message>
<message><source>The chosen peer</source><translation>Der gewählte Peer</translation></message>
<message><source>The clock on %1 is %2 ahead of this computer's.</source><translation>Die Uhr auf %1 geht %2 vor.</translation></message>
<message><source>The clock on %1 is %2 behind this computer's.</source><translation>Die Uhr auf %1 geht %2 nach.</translation></message>
<message><source>The command</source><translation>Der Befehl</translation></message>
<message><source>The computer runs on battery.</source><translation>Der Computer läuft mit Akku.</translation></message>
<message><source>The connection is not safe: %1.</source><translation>Die Verbindung ist nicht sicher: %1.</translation></message>
<message><source>The connection to %1 broke.</source><translation>Die Verbindung zu %1 ist abgebrochen.</translation></message>
<message><source>The converted %1 needs %2 MB, and the disk has %3 MB free.</source><translation>Umgewandelt braucht %1 %2 MB, und auf der Platte sind %3 MB frei.</translation></message>
<message><source>The converted tokenizer cannot be written to %1: %2.</source><translation>Der umgewandelte Tokenizer lässt sich nicht in %1 schreiben: %2.</translation></message>
<message><source>The damaged file is kept as %1.</source><translation>Die beschädigte Datei bleibt als %1 erhalten.</translation></message>
<message><source>The default is 4 and 4.</source><translation>Die Vorgabe ist 4 und 4.</translation></message>
<message><source>The disk did not take a checkpoint.</source><translation>Der Datenträger nahm keinen Stand an.</translation></message>
<message><source>The disk does not take the record of events.</source><translation>Der Datenträger nimmt die Aufzeichnung der Ereignisse nicht an.</translation></message>
<message><source>The disk of %1 has no locks, so nothing keeps two engines apart.</source><translation>Der Datenträger von %1 kennt keine Sperren, also hält nichts zwei Engines auseinander.</translation></message>
<message><source>The disk refused the weights of now: %1.</source><translation>Der Datenträger nahm die Gewichte von jetzt nicht an: %1.</translation></message>
<message><source>The download continues where it stopped if it is interrupted.</source><translation>Nach einer Unterbrechung geht der Download dort weiter, wo er war.</translation></message>
<message><source>The download resumes if interrupted.</source><translation>Nach einer Unterbrechung geht der Download weiter.</translation></message>
<message><source>The engine cannot listen in %1: %2.</source><translation>Die Engine kann in %1 nicht lauschen: %2.</translation></message>
<message><source>The engine could not do that: %1.</source><translation>Das konnte die Engine nicht: %1.</translation></message>
<message><source>The engine does not answer.</source><translation>Die Engine antwortet nicht.</translation></message>
<message><source>The engine ended after %1 rounds.</source><translation>Die Engine endete nach %1 Runden.</translation></message>
<message><source>The engine ended before it answered.</source><translation>Die Engine endete, bevor sie antwortete.</translation></message>
<message><source>The engine ended while it opened the model in %1. It opens this model only if you choose it once more, on the page Models or with `waggle model choose`.</source><translation>Die Engine wurde beendet, während sie das Modell in %1 öffnete. Sie öffnet dieses Modell nur, wenn du es noch einmal wählst, auf der Seite Modelle oder mit `waggle model choose`.</translation></message>
<message><source>The engine has ended.</source><translation>Die Engine hat geendet.</translation></message>
<message><source>The engine is ending.</source><translation>Die Engine wird beendet.</translation></message>
<message><source>The engine is leaving.</source><translation>Die Engine geht gerade.</translation></message>
<message><source>The engine met an unexpected error: %1.</source><translation>Die Engine traf auf einen unerwarteten Fehler: %1.</translation></message>
<message><source>The engine of %1 cannot be asked: %2.</source><translation>Die Engine von %1 kann nicht gefragt werden: %2.</translation></message>
<message><source>The engine repairs it when it starts.</source><translation>Die Engine repariert sie beim Start.</translation></message>
<message><source>The engine said something endless.</source><translation>Die Engine hat etwas Endloses gesagt.</translation></message>
<message><source>The engine said something unknown: %1.</source><translation>Die Engine sagte etwas Unbekanntes: %1.</translation></message>
<message><source>The engine saves one when it stops.</source><translation>Die Engine speichert einen, wenn sie anhält.</translation></message>
<message><source>The engine speaks protocol %1, this window %2.</source><translation>Die Engine spricht Protokoll %1, dieses Fenster %2.</translation></message>
<message><source>The engine that ran without a window has ended.</source><translation>Die Engine, die ohne Fenster lief, hat geendet.</translation></message>
<message><source>The engine writes the history: `waggle engine` starts it.</source><translation>Die Engine schreibt den Verlauf: `waggle engine` startet sie.</translation></message>
<message><source>The figures of every round, which charts are drawn from.</source><translation>Die Zahlen jeder Runde, aus denen die Kurven entstehen.</translation></message>
<message><source>The figures of rounds cannot be written any more: %1.</source><translation>Die Zahlen der Runden können nicht mehr geschrieben werden: %1.</translation></message>
<message><source>The file</source><translation>Die Datei</translation></message>
<message><source>The file cannot be read: %1.</source><translation>Die Datei lässt sich nicht lesen: %1.</translation></message>
<message><source>The file is opened and closed again; nothing is changed.</source><translation>Die Datei wird geöffnet und wieder geschlossen; nichts ändert sich.</translation></message>
<message><source>The file of %1 %2.</source><translation>Die Datei von %1 %2.</translation></message>
<message><source>The file of the backup</source><translation>Die Datei der Sicherung</translation></message>
<message><source>The file with the questions is refused: %1.</source><translation>Die Datei mit den Fragen wird abgelehnt: %1.</translation></message>
<message><source>The files %1 and %2 with the questions are refused: both have the question %3.</source><translation>Die Dateien %1 und %2 mit den Fragen werden abgelehnt: Beide enthalten die Frage %3.</translation></message>
<message><source>The first climb takes a while</source><translation>Der erste Anstieg braucht etwas Zeit</translation></message>
<message><source>The first right answer in each specialty appears here, with the peer it was learned from.</source><translation>Die erste richtige Antwort in jedem Fachgebiet steht dann hier, mit dem Peer, von dem sie gelernt wurde.</translation></message>
<message><source>The folder %1 cannot be used: %2.</source><translation>Der Ordner %1 lässt sich nicht benutzen: %2.</translation></message>
<message><source>The folder %1 cannot be written: %2.</source><translation>In den Ordner %1 lässt sich nicht schreiben: %2.</translation></message>
<message><source>The folder %1 is not yours alone.</source><translation>Der Ordner %1 gehört nicht dir allein.</translation></message>
<message><source>The folder of an export is named by its whole path.</source><translation>Der Ordner eines Exports wird mit seinem ganzen Pfad genannt.</translation></message>
<message><source>The gateway %1 shows %2 of %3 members that another one shows.</source><translation>Das Gateway %1 zeigt %2 von %3 Mitgliedern, die ein anderes zeigt.</translation></message>
<message><source>The header of %1 of %2 is too large.</source><translation>Der Kopf von %1 von %2 ist zu groß.</translation></message>
<message><source>The heads of the model in %1 cannot be shared out.</source><translation>Die Köpfe des Modells in %1 lassen sich nicht aufteilen.</translation></message>
<message><source>The history %1 cannot be read: %2.</source><translation>Der Verlauf %1 lässt sich nicht lesen: %2.</translation></message>
<message><source>The history cannot be opened: %1.</source><translation>Der Verlauf lässt sich nicht öffnen: %1.</translation></message>
<message><source>The history cannot be written: %1.</source><translation>Der Verlauf lässt sich nicht schreiben: %1.</translation></message>
<message><source>The history was damaged; %1 rounds of it were rebuilt from the record of events.</source><translation>Der Verlauf war beschädigt; %1 Runden davon wurden aus der Aufzeichnung der Ereignisse wiederhergestellt.</translation></message>
<message><source>The history was older than the model. Restored rounds: %1.</source><translation>Der Verlauf war älter als das Modell. Wiederhergestellte Runden: %1.</translation></message>
<message><source>The hours are those of the other computer.</source><translation>Die Stunden sind die des anderen Computers.</translation></message>
<message><source>The identity file %1 cannot be opened: %2.</source><translation>Die Identitätsdatei %1 lässt sich nicht öffnen: %2.</translation></message>
<message><source>The identity file %1 cannot be written: %2.</source><translation>Die Identitätsdatei %1 lässt sich nicht schreiben: %2.</translation></message>
<message><source>The identity file %1 is damaged.</source><translation>Die Identitätsdatei %1 ist beschädigt.</translation></message>
<message><source>The identity file %1 is damaged: its two halves do not belong together.</source><translation>Die Identitätsdatei %1 ist beschädigt: Ihre Hälften gehören nicht zusammen.</translation></message>
<message><source>The installed app comes without it. Run Waggle from its source to use it.</source><translation>Die installierte App enthält es nicht. Starte Waggle aus seinem Quelltext, um es zu nutzen.</translation></message>
<message><source>The invite link</source><translation>Der Einladungslink</translation></message>
<message><source>The invite link as a QR code; the same link stands beside it as text</source><translation>Der Einladungslink als QR-Code; derselbe Link steht als Text daneben</translation></message>
<message><source>The journal cannot be mended: %1.</source><translation>Das Journal lässt sich nicht reparieren: %1.</translation></message>
<message><source>The journal has every round since the last one. Make room on the disk.</source><translation>Das Journal enthält jede Runde seit dem letzten. Schaffe Platz auf der Festplatte.</translation></message>
<message><source>The judging process cannot be started: %1.</source><translation>Der Prüfer lässt sich nicht starten: %1.</translation></message>
<message><source>The judging process was started again: %1.</source><translation>Der Prüfer wurde neu gestartet: %1.</translation></message>
<message><source>The key %1 of a private swarm cannot be opened: %2.</source><translation>Der Schlüssel %1 eines privaten Schwarms lässt sich nicht öffnen: %2.</translation></message>
<message><source>The key file cannot be replaced: %1.</source><translation>Die Schlüsseldatei lässt sich nicht ersetzen: %1.</translation></message>
<message><source>The key that is here does not open %1.</source><translation>Der Schlüssel hier öffnet %1 nicht.</translation></message>
<message><source>The key that makes you who you are is still here.</source><translation>Der Schlüssel, der dich ausmacht, ist noch hier.</translation></message>
<message><source>The keychain of this computer cannot be used (%1).</source><translation>Der Schlüsselbund dieses Computers lässt sich nicht benutzen (%1).</translation></message>
<message><source>The last one of the user is the question.</source><translation>Die letzte des Benutzers ist die Frage.</translation></message>
<message><source>The last ten messages that left this computer</source><translation>Die letzten zehn Nachrichten, die diesen Computer verließen</translation></message>
<message><source>The last year</source><translation>Das letzte Jahr</translation></message>
<message><source>The layers of the model in %1 cannot be normalised.</source><translation>Die Schichten des Modells in %1 lassen sich nicht normieren.</translation></message>
<message><source>The limit of %1 kB/s makes answers of peers and your own wait.</source><translation>Die Grenze von %1 kB/s lässt Antworten von Peers und deine eigenen warten.</translation></message>
<message><source>The link holds the key of this private swarm: whoever has it can join, and it cannot be taken back. To shut somebody out, create a new swarm.</source><translation>Der Link enthält den Schlüssel dieses privaten Schwarms: Wer ihn hat, kann beitreten, und er lässt sich nicht zurücknehmen. Um jemanden auszuschließen, lege einen neuen Schwarm an.</translation></message>
<message><source>The link is ready: copy it, or save it as a file.</source><translation>Der Link ist fertig: Kopiere ihn oder sichere ihn als Datei.</translation></message>
<message><source>The link works as long as this computer, or another one listed in it, is on.</source><translation>Der Link gilt, solange dieser Computer oder ein anderer, der darin steht, eingeschaltet ist.</translation></message>
<message><source>The list of audited specialties cannot be read.</source><translation>Die Liste der geprüften Fachgebiete lässt sich nicht lesen.</translation></message>
<message><source>The list of specialties cannot be read.</source><translation>Die Liste der Fachgebiete lässt sich nicht lesen.</translation></message>
<message><source>The list of swarms %1 cannot be read: %2.</source><translation>Die Liste der Schwärme %1 lässt sich nicht lesen: %2.</translation></message>
<message><source>The list of swarms %1 cannot be set aside.</source><translation>Die Liste der Schwärme %1 lässt sich nicht beiseitelegen.</translation></message>
<message><source>The list of swarms %1 is damaged.</source><translation>Die Liste der Schwärme %1 ist beschädigt.</translation></message>
<message><source>The list of swarms cannot be written: %1.</source><translation>Die Liste der Schwärme lässt sich nicht schreiben: %1.</translation></message>
<message><source>The list of versions cannot be reached.</source><translation>Die Liste der Versionen ist nicht zu erreichen.</translation></message>
<message><source>The list of versions cannot be read.</source><translation>Die Liste der Versionen lässt sich nicht lesen.</translation></message>
<message><source>The list of versions is not signed by Waggle's makers; it was ignored.</source><translation>Die Liste der Versionen ist nicht von den Machern von Waggle unterschrieben; sie wurde nicht beachtet.</translation></message>
<message><source>The list of versions is too long to be one.</source><translation>Die Liste der Versionen ist zu lang, um eine zu sein.</translation></message>
<message><source>The list of your swarms was damaged. Waggle found your swarms in other files.</source><translation>Die Liste deiner Schwärme war beschädigt. Waggle hat sie in anderen Dateien wiedergefunden.</translation></message>
<message><source>The list of your swarms was gone. Waggle found your swarms in other files.</source><translation>Die Liste deiner Schwärme war weg. Waggle hat sie in anderen Dateien wiedergefunden.</translation></message>
<message><source>The local network cannot be searched: %1.</source><translation>Das lokale Netz lässt sich nicht durchsuchen: %1.</translation></message>
<message><source>The log has the details.</source><translation>Einzelheiten stehen im Protokoll.</translation></message>
<message><source>The longest question has %1 characters, the longest answer %2.</source><translation>Die längste Frage hat %1 Zeichen, die längste Antwort %2.</translation></message>
<message><source>The model after %1 rounds is not kept any more.</source><translation>Das Modell nach %1 Runden ist nicht mehr aufgehoben.</translation></message>
<message><source>The model cannot be computed: %1</source><translation>Das Modell lässt sich nicht berechnen: %1</translation></message>
<message><source>The model cannot be computed: %1.</source><translation>Das Modell lässt sich nicht berechnen: %1.</translation></message>
<message><source>The model could not be downloaded, for a reason that Waggle did not expect.</source><translation>Das Modell konnte nicht heruntergeladen werden, aus einem Grund, den Waggle nicht erwartet hat.</translation></message>
<message><source>The model does not write from left to right.</source><translation>Das Modell schreibt nicht von links nach rechts.</translation></message>
<message><source>The model has words that are no numbers.</source><translation>Das Modell hat Wörter, die keine Zahlen sind.</translation></message>
<message><source>The model in %1 cannot be checked now: %2.</source><translation>Das Modell in %1 lässt sich gerade nicht prüfen: %2.</translation></message>
<message><source>The model in %1 cannot be opened: %2.</source><translation>Das Modell in %1 lässt sich nicht öffnen: %2.</translation></message>
<message><source>The model in %1 cannot be read: %2 is not there.</source><translation>Das Modell in %1 lässt sich nicht lesen: %2 fehlt.</translation></message>
<message><source>The model in %1 cannot be read: %2.</source><translation>Das Modell in %1 lässt sich nicht lesen: %2.</translation></message>
<message><source>The model in %1 cannot be read: its config.json says that %2 is %3.</source><translation>Das Modell in %1 lässt sich nicht lesen: Laut seiner config.json ist %2 gleich %3.</translation></message>
<message><source>The model in %1 cannot be read: its head is not its embedding, as it says.</source><translation>Das Modell in %1 lässt sich nicht lesen: Sein Kopf ist nicht seine Einbettung, wie es sagt.</translation></message>
<message><source>The model in %1 names no stop token.</source><translation>Das Modell in %1 nennt kein Schlusstoken.</translation></message>
<message><source>The model in %1 needs code of its own, which Waggle never runs.</source><translation>Das Modell in %1 braucht eigenen Code, und den führt Waggle nie aus.</translation></message>
<message><source>The model is downloaded once, and kept. Training begins when it is here.</source><translation>Das Modell wird einmal heruntergeladen und bleibt hier. Das Training beginnt, wenn es da ist.</translation></message>
<message><source>The model is still in the middle of a step.</source><translation>Das Modell ist noch mitten in einem Schritt.</translation></message>
<message><source>The model is trained another way than before: its optimiser begins anew.</source><translation>Das Modell wird anders trainiert als zuvor: Sein Optimierer beginnt von vorn.</translation></message>
<message><source>The model itself, unless you export it</source><translation>Das Modell selbst, außer du exportierst es</translation></message>
<message numerus="yes"><source>The model knew it %n times, but did not mark it as its answer. Your model learns that first.</source><translation><numerusform>Das Modell wusste es einmal, markierte es aber nicht als Antwort. Das lernt dein Modell zuerst.</numerusform><numerusform>Das Modell wusste es %n-mal, markierte es aber nicht als Antwort. Das lernt dein Modell zuerst.</numerusform></translation></message>
<message><source>The model ran out of memory.</source><translation>Dem Modell ging der Speicher aus.</translation></message>
<message><source>The model's answers are no numbers.</source><translation>Die Antworten des Modells sind keine Zahlen.</translation></message>
<message><source>The model's quantisation cannot be read: %1.</source><translation>Die Quantisierung des Modells lässt sich nicht lesen: %1.</translation></message>
<message><source>The most capable one here; it wants a large graphics card.</source><translation>Das fähigste hier; es braucht eine große Grafikkarte.</translation></message>
<message><source>The most it may take.</source><translation>So viel darf es höchstens nehmen.</translation></message>
<message><source>The network address that Waggle listens on. 0.0.0.0 means every network of this computer.</source><translation>Die Netzadresse, auf der Waggle lauscht. 0.0.0.0 heißt: jedes Netz dieses Computers.</translation></message>
<message><source>The network answers in place of the server.</source><translation>Das Netzwerk antwortet anstelle des Servers.</translation></message>
<message><source>The network is metered.</source><translation>Das Netz ist getaktet.</translation></message>
<message><source>The network is not metered any more.</source><translation>Das Netz ist nicht mehr getaktet.</translation></message>
<message><source>The network is not metered.</source><translation>Das Netz ist nicht getaktet.</translation></message>
<message><source>The network process does not keep running: its next start waits for up to a minute. Training continues alone.</source><translation>Der Netzprozess läuft nicht durch: sein nächster Start wartet bis zu einer Minute. Das Training geht allein weiter.</translation></message>
<message><source>The network process does not start.</source><translation>Der Netzprozess startet nicht.</translation></message>
<message><source>The network process ended while it started.</source><translation>Der Netzprozess endete beim Starten.</translation></message>
<message><source>The newest saved state answers.</source><translation>Es antwortet der neueste gespeicherte Stand.</translation></message>
<message><source>The next right answer, yours or a peer's, appears here.</source><translation>Die nächste richtige Antwort, deine oder die eines Peers, steht dann hier.</translation></message>
<message><source>The old one is kept beside it as %1.</source><translation>Die alte bleibt daneben als %1 erhalten.</translation></message>
<message><source>The old training cannot continue with these files.</source><translation>Das alte Training kann mit diesen Dateien nicht weitergehen.</translation></message>
<message><source>The one before it was used.</source><translation>Der davor wurde benutzt.</translation></message>
<message><source>The other computer does not answer: nothing was changed.</source><translation>Der andere Computer antwortet nicht: Nichts wurde geändert.</translation></message>
<message><source>The other questions of this round</source><translation>Die anderen Fragen dieser Runde</translation></message>
<message><source>The package index answered %1 when asked for %2.</source><translation>Der Paketindex antwortete mit %1 auf die Frage nach %2.</translation></message>
<message><source>The package index cannot be reached.</source><translation>Der Paketindex ist nicht erreichbar.</translation></message>
<message><source>The package index sends %1 in a form that cannot be read, or in circles.</source><translation>Der Paketindex schickt %1 in unlesbarer Form oder im Kreis.</translation></message>
<message><source>The page Swarms says why.</source><translation>Die Seite Schwärme sagt, warum.</translation></message>
<message><source>The picture cannot be read.</source><translation>Das Bild kann nicht gelesen werden.</translation></message>
<message><source>The picture is damaged.</source><translation>Das Bild ist beschädigt.</translation></message>
<message><source>The picture is too large.</source><translation>Das Bild ist zu groß.</translation></message>
<message><source>The place of a backup is named by its whole path.</source><translation>Der Ort einer Sicherung wird mit seinem ganzen Pfad genannt.</translation></message>
<message><source>The positions of the model in %1 cannot be turned.</source><translation>Die Positionen des Modells in %1 lassen sich nicht drehen.</translation></message>
<message><source>The preview does not join yet. It shows:</source><translation>Mit der Vorschau trittst du noch nicht bei. Sie zeigt:</translation></message>
<message><source>The processor has just cooled down.</source><translation>Der Prozessor ist gerade erst abgekühlt.</translation></message>
<message><source>The processor is cool enough.</source><translation>Der Prozessor ist kühl genug.</translation></message>
<message><source>The processor is too warm: %1 °C.</source><translation>Der Prozessor ist zu warm: %1 °C.</translation></message>
<message><source>The proxy %1 does not answer.</source><translation>Der Proxy %1 antwortet nicht.</translation></message>
<message><source>The proxy %1 refused the connection: %2.</source><translation>Der Proxy %1 hat die Verbindung abgelehnt: %2.</translation></message>
<message><source>The puzzles load in a sandbox. On a busy computer that can take a minute or two.</source><translation>Die Rätsel werden in einer Sandbox geladen. Auf einem ausgelasteten Computer kann das ein, zwei Minuten dauern.</translation></message>
<message><source>The question alone</source><translation>Nur die Frage</translation></message>
<message><source>The questions and answers are too many: %1 with %2 bytes.</source><translation>Es sind zu viele Fragen und Antworten: %1 mit %2 Bytes.</translation></message>
<message><source>The questions cannot be stored: %1.</source><translation>Die Fragen lassen sich nicht speichern: %1.</translation></message>
<message><source>The questions change here</source><translation>Hier wechseln die Fragen</translation></message>
<message><source>The questions of %1 are not on this computer yet.</source><translation>Die Fragen von %1 sind noch nicht auf diesem Computer.</translation></message>
<message><source>The questions of %1 are not on this computer, and it trains alone.</source><translation>Die Fragen von %1 sind nicht auf diesem Computer, und er trainiert allein.</translation></message>
<message><source>The questions of this swarm are not complete.</source><translation>Die Fragen dieses Schwarms sind nicht vollständig.</translation></message>
<message><source>The questions take %1 bytes when compressed.</source><translation>Die Fragen brauchen gepackt %1 Bytes.</translation></message>
<message><source>The race has begun</source><translation>Das Rennen läuft</translation></message>
<message><source>The race said something unknown: %1.</source><translation>Der Wettlauf sagte etwas Unbekanntes: %1.</translation></message>
<message><source>The race stopped by itself</source><translation>Der Wettlauf brach von selbst ab</translation></message>
<message><source>The report</source><translation>Der Bericht</translation></message>
<message><source>The rounds before are kept.</source><translation>Die Runden davor sind gespeichert.</translation></message>
<message><source>The rounds so far are being asked for.</source><translation>Die bisherigen Runden werden erfragt.</translation></message>
<message><source>The rounds that it follows are lost.</source><translation>Die Runden, auf die es folgt, sind verloren.</translation></message>
<message><source>The same model alone solved %1 of 100 after as many rounds, in the mean of %2 measured runs.</source><translation>Dasselbe Modell löste allein nach ebenso vielen Runden %1 von 100, im Mittel von %2 gemessenen Läufen.</translation></message>
<message><source>The same passphrase again</source><translation>Dieselbe Passphrase noch einmal</translation></message>
<message><source>The saved state belongs to another model.</source><translation>Der gespeicherte Stand gehört zu einem anderen Modell.</translation></message>
<message><source>The saved state in %1 belongs to another model than the one in %2.</source><translation>Der Stand in %1 gehört zu einem anderen Modell als dem in %2.</translation></message>
<message><source>The saved state in %1 belongs to another model.</source><translation>Der Stand in %1 gehört zu einem anderen Modell.</translation></message>
<message><source>The saved state in %1 was trained as %2, not as %3.</source><translation>Der Stand in %1 wurde als %2 trainiert, nicht als %3.</translation></message>
<message><source>The saved state in %1 was trained by %2, which names its weights in another way than %3.</source><translation>Der gespeicherte Stand in %1 wurde von %2 trainiert, das seine Gewichte anders nennt als %3.</translation></message>
<message><source>The saved state in %1 was written by a newer Waggle.</source><translation>Der Stand in %1 wurde von einem neueren Waggle geschrieben.</translation></message>
<message><source>The scores of the model in %1 cannot be scaled.</source><translation>Die Bewertungen der Aufmerksamkeit des Modells in %1 lassen sich nicht skalieren.</translation></message>
<message><source>The seed %1 has this node's own identity, so it cannot be called.</source><translation>Der Seed %1 hat die Identität dieses Knotens selbst und kann darum nicht angerufen werden.</translation></message>
<message><source>The seed has no effect beside peers, as what they send cannot be repeated.</source><translation>Der Startwert wirkt neben Peers nicht, denn was sie senden, lässt sich nicht wiederholen.</translation></message>
<message><source>The setting %1 cannot be used, so Waggle uses the default.</source><translation>Die Option %1 ist nicht zu gebrauchen; Waggle nimmt die Vorgabe.</translation></message>
<message><source>The settings %1 cannot be written: %2.</source><translation>Die Optionen %1 lassen sich nicht schreiben: %2.</translation></message>
<message><source>The settings file %1 cannot be read: %2.</source><translation>Die Datei der Optionen %1 lässt sich nicht lesen: %2.</translation></message>
<message><source>The settings file %1 cannot be read: it is not in UTF-8.</source><translation>Die Datei der Optionen %1 lässt sich nicht lesen: Sie ist nicht in UTF-8.</translation></message>
<message><source>The settings file %1 cannot be set aside: %2.</source><translation>Die Datei der Optionen %1 lässt sich nicht beiseitelegen: %2.</translation></message>
<message><source>The settings file %1 is empty, so what you chose is lost.</source><translation>Die Datei der Optionen %1 ist leer; was du gewählt hattest, ist verloren.</translation></message>
<message><source>The settings file %1 is too long.</source><translation>Die Datei der Optionen %1 ist zu lang.</translation></message>
<message><source>The settings file cannot be read.</source><translation>Die Datei der Optionen lässt sich nicht lesen.</translation></message>
<message><source>The settings file cannot be used: what stands here is not what it holds. Mend it, or set it aside on Home.</source><translation>Die Datei der Optionen ist nicht zu gebrauchen: Was hier steht, steht nicht in ihr. Berichtige sie, oder lege sie unter Start beiseite.</translation></message>
<message><source>The smallest one: it learns on almost any computer.</source><translation>Das kleinste: Es lernt auf fast jedem Computer.</translation></message>
<message><source>The starter</source><translation>Der Starter</translation></message>
<message><source>The starter knows many answers but hardly ever writes them in the answer tag. It learns that first.</source><translation>Der Starter kennt viele Antworten, schreibt sie aber fast nie in das Antwort-Tag. Das lernt er zuerst.</translation></message>
<message><source>The starter that comes with Waggle</source><translation>Der Starter, der mit Waggle kommt</translation></message>
<message><source>The stop tokens of this model changed since it was trained last.</source><translation>Die Schlusstoken dieses Modells haben sich seit seinem letzten Training geändert.</translation></message>
<message><source>The swarm is here again.</source><translation>Der Schwarm ist wieder da.</translation></message>
<message><source>The swarm is not joined yet.</source><translation>Dem Schwarm ist noch nicht beigetreten.</translation></message>
<message><source>The swarm needs a name.</source><translation>Der Schwarm braucht einen Namen.</translation></message>
<message><source>The swarm that you chose</source><translation>Der Schwarm, den du gewählt hast,</translation></message>
<message><source>The swarm's charter</source><translation>Die Charta des Schwarms</translation></message>
<message><source>The swarm's questions</source><translation>Die Fragen des Schwarms</translation></message>
<message><source>The swarms you know appear here.</source><translation>Die Schwärme, die du kennst, erscheinen hier.</translation></message>
<message><source>The test failed. Details are below.</source><translation>Der Test ist fehlgeschlagen. Einzelheiten stehen darunter.</translation></message>
<message><source>The tokenizer in %1 cannot be converted now: %2.</source><translation>Der Tokenizer in %1 lässt sich gerade nicht umwandeln: %2.</translation></message>
<message><source>The tokenizer in %1 cannot be converted: %2.</source><translation>Der Tokenizer in %1 lässt sich nicht umwandeln: %2.</translation></message>
<message><source>The tokenizer in %1 cannot be read: %2.</source><translation>Der Tokenizer in %1 lässt sich nicht lesen: %2.</translation></message>
<message><source>The tokenizer in %1 has a token of %2 characters.</source><translation>Der Tokenizer in %1 hat ein Token mit %2 Zeichen.</translation></message>
<message><source>The tokenizer in %1 has no tokens for plain text.</source><translation>Der Tokenizer in %1 hat keine Tokens für gewöhnlichen Text.</translation></message>
<message><source>The tokenizer in %1 has to be converted, which this version of Waggle cannot do.</source><translation>Der Tokenizer in %1 muss umgewandelt werden, und das kann diese Version von Waggle nicht.</translation></message>
<message><source>The tokenizer in %1 may make a text more than %2 times as long.</source><translation>Der Tokenizer in %1 kann einen Text mehr als %2-mal so lang machen.</translation></message>
<message><source>The tolerance is not a number from 0 to a billion.</source><translation>Die Toleranz ist keine Zahl von 0 bis zu einer Milliarde.</translation></message>
<message><source>The two are not the same yet.</source><translation>Die beiden sind noch nicht gleich.</translation></message>
<message><source>The upload failed: %1.</source><translation>Das Hochladen schlug fehl: %1.</translation></message>
<message><source>The web port %1 of %2 cannot be listened on: %3.</source><translation>Der Web-Port %1 von %2 lässt sich nicht öffnen: %3.</translation></message>
<message><source>The weights of the model in %1 are named otherwise: %2, not %3.</source><translation>Die Gewichte des Modells in %1 heißen anders: %2, nicht %3.</translation></message>
<message><source>The weights of the model in %1 are not those that its config.json says.</source><translation>Die Gewichte des Modells in %1 sind andere, als seine config.json sagt.</translation></message>
<message><source>The weights of the model in %1 are only there as pickles, which can run any code where they are read.</source><translation>Die Gewichte des Modells in %1 gibt es nur als Pickles, die beim Lesen jeden Code ausführen können.</translation></message>
<message><source>The words of the model in %1 do not fit it: it has %2 tokens.</source><translation>Die Wörter des Modells in %1 passen nicht zu ihm: Es hat %2 Tokens.</translation></message>
<message><source>Their answer keys could not be checked independently; their scorers were tested with altered answers.</source><translation>Ihre Lösungen ließen sich nicht unabhängig prüfen; ihre Bewertung wurde mit veränderten Antworten getestet.</translation></message>
<message><source>Theme</source><translation>Farben</translation></message>
<message><source>Then it continues by itself.</source><translation>Danach geht es von selbst weiter.</translation></message>
<message><source>There are %1 GGUF files in %2.</source><translation>In %2 liegen %1 GGUF-Dateien.</translation></message>
<message><source>There are %1.</source><translation>Es gibt %1.</translation></message>
<message><source>There are no peers in a swarm of one computer.</source><translation>In einem Schwarm aus einem Computer gibt es keine Peers.</translation></message>
<message><source>There is no %1 at the level %2.</source><translation>%1 gibt es nicht auf der Stufe %2.</translation></message>
<message><source>There is no QR code in that picture, or it cannot be read.</source><translation>In diesem Bild ist kein QR-Code, oder er ist nicht lesbar.</translation></message>
<message><source>There is no Waggle on %1.</source><translation>Auf %1 gibt es kein Waggle.</translation></message>
<message><source>There is no grader %1.</source><translation>Es gibt keinen Bewerter %1.</translation></message>
<message><source>There is no invite in that file.</source><translation>In dieser Datei ist keine Einladung.</translation></message>
<message><source>There is no model in %1.</source><translation>In %1 ist kein Modell.</translation></message>
<message><source>There is no model in %1: %2 is missing.</source><translation>In %1 ist kein Modell: %2 fehlt.</translation></message>
<message><source>There is no run %1.</source><translation>Es gibt keinen Lauf %1.</translation></message>
<message><source>There is no setting %1.</source><translation>Es gibt keine Option %1.</translation></message>
<message><source>There is no sharing strategy %1.</source><translation>Es gibt keine Strategie %1 zum Teilen.</translation></message>
<message><source>There is no tokenizer.json in %1.</source><translation>In %1 ist keine tokenizer.json.</translation></message>
<message><source>There is no update rule %1.</source><translation>Es gibt keine Lernregel %1.</translation></message>
<message><source>There is nothing to answer.</source><translation>Es gibt nichts zu beantworten.</translation></message>
<message><source>There is nothing to decide.</source><translation>Es gibt nichts zu entscheiden.</translation></message>
<message><source>There is something at %1 already.</source><translation>Unter %1 ist schon etwas.</translation></message>
<message><source>There is something in %1 already.</source><translation>In %1 ist schon etwas.</translation></message>
<message><source>There is too little free memory for the race.</source><translation>Für den Wettlauf ist zu wenig Speicher frei.</translation></message>
<message><source>There is too little free memory to copy the weights of now.</source><translation>Es ist zu wenig Speicher frei, um die Gewichte von jetzt zu kopieren.</translation></message>
<message><source>There, waggle cuda --get uses the NVIDIA card</source><translation>Dort nutzt waggle cuda --get die NVIDIA-Karte</translation></message>
<message><source>These are the peers of before.</source><translation>Das sind die Peers von vorher.</translation></message>
<message><source>These settings are too long to be kept.</source><translation>Diese Optionen sind zu lang, um gespeichert zu werden.</translation></message>
<message><source>They are downloaded from the swarm's members.</source><translation>Sie werden von den Mitgliedern des Schwarms heruntergeladen.</translation></message>
<message><source>They are removed for good. Training stops first, then Waggle closes.</source><translation>Sie werden endgültig entfernt. Zuerst hält das Training an, dann schließt sich Waggle.</translation></message>
<message><source>They have to be downloaded again.</source><translation>Sie müssen neu heruntergeladen werden.</translation></message>
<message><source>They were set aside: start again to begin anew.</source><translation>Sie wurden beiseitegelegt: Starte neu, um von vorn zu beginnen.</translation></message>
<message><source>This Hugging Face address is not of a model.</source><translation>Diese Adresse von Hugging Face gehört zu keinem Modell.</translation></message>
<message><source>This backup holds another key than it says.</source><translation>Diese Sicherung enthält einen anderen Schlüssel, als sie sagt.</translation></message>
<message><source>This backup is damaged.</source><translation>Diese Sicherung ist beschädigt.</translation></message>
<message><source>This cannot be dropped here</source><translation>Das geht hier nicht</translation></message>
<message><source>This charter cannot be read: %1.</source><translation>Diese Charta lässt sich nicht lesen: %1.</translation></message>
<message><source>This charter is malformed.</source><translation>Diese Charta ist fehlerhaft.</translation></message>
<message><source>This charter is not the one the invite names.</source><translation>Diese Charta ist nicht die, die die Einladung nennt.</translation></message>
<message><source>This charter is too large.</source><translation>Diese Charta ist zu groß.</translation></message>
<message><source>This charter's specialties cannot be made here: %1.</source><translation>Die Fachgebiete dieser Charta lassen sich hier nicht herstellen: %1.</translation></message>
<message><source>This command cannot be read: %1.</source><translation>Dieser Befehl lässt sich nicht lesen: %1.</translation></message>
<message><source>This computer cannot join a swarm: its network part is missing.</source><translation>Dieser Computer kann keinem Schwarm beitreten: Sein Netzteil fehlt.</translation></message>
<message><source>This computer does not tell its temperature.</source><translation>Dieser Computer verrät seine Temperatur nicht.</translation></message>
<message><source>This computer does not tell whether a program fills the screen.</source><translation>Dieser Computer verrät nicht, ob ein Programm den Bildschirm füllt.</translation></message>
<message><source>This computer does not tell whether its network is metered.</source><translation>Dieser Computer verrät nicht, ob sein Netz getaktet ist.</translation></message>
<message><source>This computer does not tell whether you are using it.</source><translation>Dieser Computer verrät nicht, ob du ihn benutzt.</translation></message>
<message><source>This computer does not tell which programs run.</source><translation>Dieser Computer verrät nicht, welche Programme laufen.</translation></message>
<message><source>This computer does not tell yet how much energy today took.</source><translation>Dieser Computer sagt noch nicht, wie viel Energie der heutige Tag brauchte.</translation></message>
<message><source>This computer makes other questions than %1 agreed on.</source><translation>Dieser Computer stellt andere Fragen, als %1 vereinbart hat.</translation></message>
<message><source>This computer may be very busy. Your model is safe. It says: %1.</source><translation>Dieser Computer ist vielleicht sehr ausgelastet. Dein Modell ist sicher. Die Meldung: %1.</translation></message>
<message><source>This computer may have too little memory for this model.</source><translation>Dieser Computer hat vielleicht zu wenig Speicher für dieses Modell.</translation></message>
<message><source>This computer only</source><translation>Nur dieser Computer</translation></message>
<message><source>This computer takes part through gateways alone, and none is named.</source><translation>Dieser Computer nimmt nur über Gateways teil, und keines ist angegeben.</translation></message>
<message><source>This computer takes part through gateways alone, and this invite names none.</source><translation>Dieser Computer nimmt nur über Gateways teil, und diese Einladung nennt keines.</translation></message>
<message><source>This computer was chosen to be alone.</source><translation>Dieser Computer soll allein bleiben.</translation></message>
<message><source>This computer's clock and that of another one differ by %1: one of the two is wrong.</source><translation>Die Uhr dieses Computers und die eines anderen unterscheiden sich um %1: Eine von beiden geht falsch.</translation></message>
<message><source>This computer's clock is %1 fast.</source><translation>Die Uhr dieses Computers geht %1 vor.</translation></message>
<message><source>This computer's clock is %1 slow.</source><translation>Die Uhr dieses Computers geht %1 nach.</translation></message>
<message><source>This computer's network proxy cannot be used.</source><translation>Der Netzwerk-Proxy dieses Computers lässt sich nicht verwenden.</translation></message>
<message><source>This computer's shared memory, /dev/shm, cannot be used: %1.</source><translation>Der geteilte Speicher dieses Computers, /dev/shm, ist nicht zu gebrauchen: %1.</translation></message>
<message><source>This conversation is as long as one can be. Clear it to begin another.</source><translation>Länger kann ein Gespräch nicht werden. Leere es, um ein neues zu beginnen.</translation></message>
<message><source>This ends by itself once it keeps running. The log says why it ended: waggle log.</source><translation>Das endet von selbst, sobald er wieder durchläuft. Warum er endete, steht im Protokoll: waggle log.</translation></message>
<message><source>This engine belongs to a window.</source><translation>Diese Engine gehört zu einem Fenster.</translation></message>
<message><source>This invite %1.</source><translation>Diese Einladung ist ungültig (%1).</translation></message>
<message><source>This invite is to First light as it was before.</source><translation>Diese Einladung führt zu First light, wie es vorher war.</translation></message>
<message><source>This invite works only on your own network, such as your Wi-Fi at home: Waggle found no address that can be reached from outside.</source><translation>Diese Einladung funktioniert nur in deinem eigenen Netz, etwa deinem WLAN: Waggle fand keine Adresse, die von außen erreichbar ist.</translation></message>
<message><source>This is a recorded run: nothing was done.</source><translation>Das ist eine Aufzeichnung: nichts wurde getan.</translation></message>
<message><source>This is a recorded run: there is no model to ask.</source><translation>Das ist eine Aufzeichnung: Da ist kein Modell, das du fragen könntest.</translation></message>
<message><source>This is all that Waggle keeps on this computer. What you choose is removed, and nothing else; the program itself is uninstalled like any other.</source><translation>Das ist alles, was Waggle auf diesem Computer aufbewahrt. Was du wählst, wird entfernt, sonst nichts; das Programm selbst deinstallierst du wie jedes andere.</translation></message>
<message><source>This is no backup of an identity.</source><translation>Das ist keine Sicherung einer Identität.</translation></message>
<message><source>This is no picture that Waggle can read.</source><translation>Dieses Bild kann Waggle nicht lesen.</translation></message>
<message><source>This is not an invite link: one begins with waggle://join?</source><translation>Das ist kein Einladungslink: Ein solcher beginnt mit waggle://join?</translation></message>
<message><source>This is the newest saved state.</source><translation>Das ist der neueste gespeicherte Stand.</translation></message>
<message><source>This kind of model cannot be exported: its weights have another form here.</source><translation>Modelle dieser Art lassen sich nicht exportieren: Ihre Gewichte haben hier eine andere Form.</translation></message>
<message><source>This link is not from Hugging Face.</source><translation>Dieser Link ist nicht von Hugging Face.</translation></message>
<message><source>This link is too long for a QR code. They open it, and Waggle shows them the swarm before they join.</source><translation>Für einen QR-Code ist dieser Link zu lang. Die andere Person öffnet ihn, und Waggle zeigt ihr den Schwarm, bevor sie beitritt.</translation></message>
<message numerus="yes"><source>This message is %n characters too long.</source><translation><numerusform>Diese Nachricht ist um %n Zeichen zu lang.</numerusform><numerusform>Diese Nachricht ist um %n Zeichen zu lang.</numerusform></translation></message>
<message><source>This message is too long for this model, which reads %1 tokens at a time.</source><translation>Diese Nachricht ist zu lang für dieses Modell, das %1 Tokens auf einmal liest.</translation></message>
<message><source>This model does not fit: it needs at least %1 GB of memory, and Waggle may use %2 GB.</source><translation>Dieses Modell passt nicht: Es braucht mindestens %1 GB Speicher, und Waggle darf %2 GB nutzen.</translation></message>
<message><source>This model has no layer that LoRA could train.</source><translation>Dieses Modell hat keine Schicht, die LoRA trainieren könnte.</translation></message>
<message><source>This model is being converted already.</source><translation>Dieses Modell wird bereits umgewandelt.</translation></message>
<message><source>This model is being downloaded already.</source><translation>Dieses Modell wird schon heruntergeladen.</translation></message>
<message><source>This model is being downloaded.</source><translation>Dieses Modell wird heruntergeladen.</translation></message>
<message><source>This model is too large to be loaded a second time.</source><translation>Dieses Modell ist zu groß, um ein zweites Mal geladen zu werden.</translation></message>
<message><source>This model is trained already.</source><translation>Dieses Modell wird schon trainiert.</translation></message>
<message><source>This model is trained now.</source><translation>Dieses Modell wird gerade trainiert.</translation></message>
<message><source>This model reads %1 tokens at a time, and the questions are longer.</source><translation>Dieses Modell liest %1 Tokens auf einmal, und die Fragen sind länger.</translation></message>
<message><source>This model was never taught to chat, and it does not remember earlier messages.</source><translation>Dieses Modell hat nie gelernt zu chatten und merkt sich frühere Nachrichten nicht.</translation></message>
<message><source>This model was quantised with %1. Opening it needs gptqmodel, which Waggle does not include.</source><translation>Dieses Modell wurde mit %1 quantisiert. Um es zu öffnen, braucht man gptqmodel, das Waggle nicht enthält.</translation></message>
<message><source>This name has characters that cannot be shown.</source><translation>Dieser Name hat Zeichen, die nicht gezeigt werden können.</translation></message>
<message><source>This name is too long.</source><translation>Dieser Name ist zu lang.</translation></message>
<message><source>This names no model.</source><translation>Das nennt kein Modell.</translation></message>
<message><source>This one</source><translation>Diese</translation></message>
<message><source>This passphrase does not open the backup, or the backup was changed.</source><translation>Diese Passphrase öffnet die Sicherung nicht, oder die Sicherung wurde verändert.</translation></message>
<message><source>This question has become too old to be shared.</source><translation>Diese Frage ist zu alt geworden, um geteilt zu werden.</translation></message>
<message><source>This round was not finished.</source><translation>Diese Runde wurde nicht beendet.</translation></message>
<message><source>This run cannot be repeated.</source><translation>Dieser Lauf lässt sich nicht wiederholen.</translation></message>
<message><source>This step has taken %1 so far.</source><translation>Dieser Schritt dauert schon %1.</translation></message>
<message><source>This swarm does not ask such questions.</source><translation>Dieser Schwarm stellt solche Fragen nicht.</translation></message>
<message><source>This swarm is not known here.</source><translation>Dieser Schwarm ist hier nicht bekannt.</translation></message>
<message><source>This swarm is open to everybody: nothing proves who wrote an answer, so nobody is ranked.</source><translation>Dieser Schwarm steht allen offen: Nichts beweist, wer eine Antwort schrieb, also hat niemand einen Rang.</translation></message>
<message><source>This swarm is taken part in now.</source><translation>An diesem Schwarm wird gerade teilgenommen.</translation></message>
<message><source>This swarm is this computer only: there is nobody to compare with.</source><translation>Dieser Schwarm ist nur dieser Computer: Es gibt niemanden zum Vergleichen.</translation></message>
<message><source>This swarm needs a newer Waggle: update this one.</source><translation>Dieser Schwarm braucht ein neueres Waggle: Aktualisiere dieses hier.</translation></message>
<message><source>This swarm was chosen to be just this computer: nothing is sent and nothing received.</source><translation>Dieser Schwarm sollte nur dieser Computer sein: Nichts wird gesendet und nichts empfangen.</translation></message>
<message><source>This swarm was looked at before the engine started again.</source><translation>Dieser Schwarm wurde angesehen, bevor die Engine neu startete.</translation></message>
<message><source>This swarm was made for an older Waggle: somebody has to create it anew.</source><translation>Dieser Schwarm ist für ein älteres Waggle gemacht: Jemand muss ihn neu gründen.</translation></message>
<message><source>This takes a few seconds.</source><translation>Das dauert ein paar Sekunden.</translation></message>
<message><source>This time alone won, %1 to %2</source><translation>Diesmal hat Allein gewonnen, %1 zu %2</translation></message>
<message><source>Those who answer cannot train with this Waggle: the page Peers says why. You are training on your own.</source><translation>Wer antwortet, kann nicht mit diesem Waggle trainieren: Die Seite Peers sagt, warum. Du trainierst allein.</translation></message>
<message><source>Through a gateway: this computer calls nobody. Your part counts all the same.</source><translation>Über ein Gateway: Dieser Computer verbindet sich mit niemandem direkt. Dein Beitrag zählt genauso.</translation></message>
<message><source>Through a relay: your router blocks calls. Your part counts all the same.</source><translation>Über ein Relais: Dein Router blockiert Verbindungen. Dein Beitrag zählt genauso.</translation></message>
<message><source>Through other computers</source><translation>Über andere Computer</translation></message>
<message><source>Thursday</source><translation>Donnerstag</translation></message>
<message><source>Time</source><translation>Zeit</translation></message>
<message><source>Time (s)</source><translation>Zeit (s)</translation></message>
<message><source>Time intervals</source><translation>Zeitspannen</translation></message>
<message><source>Times shown here follow that clock.</source><translation>Die Zeiten hier richten sich nach jener Uhr.</translation></message>
<message><source>Tiny programs</source><translation>Winzige Programme</translation></message>
<message><source>Title</source><translation>Titel</translation></message>
<message><source>Title of the questions of %1</source><translation>Titel der Fragen von %1</translation></message>
<message><source>To load the model again takes %1 GB, and %2 GB are free of the %3 GB of memory that you allow.</source><translation>Das Modell noch einmal zu laden, braucht %1 GB, und von den %3 GB Speicher, die du erlaubst, sind %2 GB frei.</translation></message>
<message><source>To load the model again takes %1 GB, and %2 GB of memory are free for it.</source><translation>Das Modell noch einmal zu laden, braucht %1 GB, und dafür sind %2 GB Speicher frei.</translation></message>
<message><source>Today's energy is used up: %1 of %2 kWh, estimated.</source><translation>Die Energie für heute ist verbraucht: %1 von %2 kWh, geschätzt.</translation></message>
<message><source>Today's energy lasts: %1 of %2 kWh, estimated.</source><translation>Die Energie für heute reicht: %1 von %2 kWh, geschätzt.</translation></message>
<message><source>Too close to call: sharing %1, alone %2</source><translation>Zu knapp für ein Urteil: Teilen %1, allein %2</translation></message>
<message><source>Too early to say</source><translation>Noch zu früh</translation></message>
<message><source>Too large</source><translation>Zu groß</translation></message>
<message><source>Top p</source><translation>Top p</translation></message>
<message><source>Trackio</source><translation>Trackio</translation></message>
<message><source>Train %1</source><translation>%1 trainieren</translation></message>
<message><source>Train Waggle's tiny starter</source><translation>Winzigen Starter trainieren</translation></message>
<message><source>Train a bigger model: %1</source><translation>Ein größeres Modell trainieren: %1</translation></message>
<message><source>Train alone</source><translation>Allein trainieren</translation></message>
<message><source>Train alone for now</source><translation>Vorerst allein trainieren</translation></message>
<message><source>Train in %1</source><translation>In %1 trainieren</translation></message>
<message><source>Train this one</source><translation>Dieses trainieren</translation></message>
<message><source>Train with your friends, your class or your lab: create a swarm and invite them, or join with an invite.</source><translation>Trainiere mit Freunden, deiner Klasse oder deinem Labor: Leg einen Schwarm an und lade sie ein, oder tritt mit einer Einladung bei.</translation></message>
<message><source>Trained</source><translation>Trainiert</translation></message>
<message><source>Training</source><translation>Trainiert</translation></message>
<message><source>Training cannot be started.</source><translation>Das Training lässt sich nicht starten.</translation></message>
<message><source>Training continues in %1. The page Swarms says why.</source><translation>Das Training geht in %1 weiter. Die Seite Schwärme sagt, warum.</translation></message>
<message><source>Training continues while the window is closed. Pause on Home, in the menu bar, or with %1.</source><translation>Das Training läuft weiter, wenn das Fenster zu ist. Pausieren kannst du auf Start, in der Menüleiste oder mit %1.</translation></message>
<message><source>Training continues while the window is closed. Pause on Home, in the tray, or with %1.</source><translation>Das Training läuft weiter, wenn das Fenster zu ist. Pausieren kannst du auf Start, im Infobereich oder mit %1.</translation></message>
<message><source>Training continues.</source><translation>Das Training geht weiter.</translation></message>
<message><source>Training continues. They are tried again at the engine's next start.</source><translation>Das Training geht weiter. Beim nächsten Start der Engine wird es wieder versucht.</translation></message>
<message><source>Training does not wait for peers.</source><translation>Das Training wartet nicht auf Peers.</translation></message>
<message><source>Training does not wait for them.</source><translation>Das Training wartet nicht auf sie.</translation></message>
<message><source>Training ended with code %1.</source><translation>Das Training endete mit dem Code %1.</translation></message>
<message><source>Training hours</source><translation>Trainingszeiten</translation></message>
<message><source>Training in %1 begins after a first test.</source><translation>Erst ein Test, dann Training in %1.</translation></message>
<message><source>Training in %1 begins in a moment.</source><translation>Das Training in %1 beginnt gleich.</translation></message>
<message><source>Training in %1, round %2.</source><translation>Training in %1, Runde %2.</translation></message>
<message><source>Training is not running.</source><translation>Das Training läuft nicht.</translation></message>
<message><source>Training is not running. The swarms you know appear here when it runs again.</source><translation>Das Training läuft nicht. Die Schwärme, die du kennst, erscheinen hier, wenn es wieder läuft.</translation></message>
<message><source>Training is not running: nothing was done.</source><translation>Das Training läuft nicht: nichts wurde getan.</translation></message>
<message><source>Training is on hold.</source><translation>Das Training ruht.</translation></message>
<message><source>Training is starting again.</source><translation>Das Training startet gerade neu.</translation></message>
<message><source>Training ran out of memory, and the system ended it.</source><translation>Dem Training ging der Speicher aus, und das System beendete es.</translation></message>
<message><source>Training resumes by itself.</source><translation>Das Training geht von selbst weiter.</translation></message>
<message><source>Training stands still in a round that is not stored yet.</source><translation>Das Training steht in einer Runde still, die noch nicht gespeichert ist.</translation></message>
<message numerus="yes"><source>Training starts again by itself in %n seconds.</source><translation><numerusform>Das Training startet in einer Sekunde von selbst wieder.</numerusform><numerusform>Das Training startet in %n Sekunden von selbst wieder.</numerusform></translation></message>
<message><source>Training starts again by itself.</source><translation>Das Training startet von selbst wieder.</translation></message>
<message><source>Training starts automatically.</source><translation>Das Training startet automatisch.</translation></message>
<message><source>Training starts without a window</source><translation>Das Training startet ohne Fenster</translation></message>
<message><source>Training stopped %1 times in a row.</source><translation>Das Training brach %1-mal hintereinander ab.</translation></message>
<message><source>Training stopped unexpectedly.</source><translation>Das Training wurde unerwartet beendet.</translation></message>
<message><source>Training time</source><translation>Trainingszeit</translation></message>
<message><source>Training used more than the %1 GB of memory that you allow</source><translation>Das Training brauchte mehr als die %1 GB Speicher, die du erlaubst</translation></message>
<message><source>Trains for three rounds on this computer. Nothing is shared or saved.</source><translation>Trainiert drei Runden lang auf diesem Computer. Nichts wird geteilt oder gespeichert.</translation></message>
<message><source>Treat it as if you had never muted or blocked it.</source><translation>Ihn behandeln, als hättest du ihn nie stumm geschaltet oder gesperrt.</translation></message>
<message><source>Trusted</source><translation>Bewährt</translation></message>
<message><source>Trusted.</source><translation>Bewährt.</translation></message>
<message><source>Try again</source><translation>Erneut versuchen</translation></message>
<message><source>Try again in a moment.</source><translation>Versuche es gleich noch einmal.</translation></message>
<message><source>Try again later, or look where you got this Waggle.</source><translation>Versuch es später noch einmal oder sieh dort nach, woher du dieses Waggle hast.</translation></message>
<message><source>Try again later.</source><translation>Versuche es später noch einmal.</translation></message>
<message><source>Try again later; what was downloaded is kept.</source><translation>Versuche es später noch einmal; was schon geladen ist, bleibt.</translation></message>
<message><source>Try again when it does.</source><translation>Versuche es wieder, wenn er es tut.</translation></message>
<message><source>Try again.</source><translation>Versuche es noch einmal.</translation></message>
<message><source>Try another number.</source><translation>Versuche eine andere Nummer.</translation></message>
<message><source>Try it</source><translation>Probieren</translation></message>
<message><source>Try your model</source><translation>Probiere dein Modell aus</translation></message>
<message><source>Trying how to ask this model: %1 of %2 ways</source><translation>Probiert aus, wie dieses Modell am besten gefragt wird: %1 von %2 Arten</translation></message>
<message><source>Tuesday</source><translation>Dienstag</translation></message>
<message><source>Turn off “Train alone” in Settings until members have sent them.</source><translation>Schalte „Allein trainieren“ in den Optionen aus, bis Mitglieder sie geschickt haben.</translation></message>
<message><source>Turn off “Train alone” in Settings, and start again.</source><translation>Schalte „Allein trainieren“ in den Optionen aus und starte neu.</translation></message>
<message><source>Turns off animations.</source><translation>Schaltet Animationen aus.</translation></message>
<message><source>Two practice swarms on this computer, one of which shares</source><translation>Zwei Übungsschwärme auf diesem Computer; einer von ihnen teilt</translation></message>
<message><source>Two small swarms on this computer: one shares, one does not. It takes two minutes.</source><translation>Zwei kleine Schwärme auf diesem Computer: Einer teilt, einer nicht. Das dauert zwei Minuten.</translation></message>
<message><source>Two small swarms train here, one sharing and one not. It takes about two minutes.</source><translation>Zwei kleine Schwärme trainieren hier nebeneinander, einer teilt, einer nicht. Das dauert etwa zwei Minuten.</translation></message>
<message><source>Two swarms of four copies begin with the same small model. In one, each copy learns only from its own answers; in the other, they share them. Nothing leaves this computer, and your own model is not touched.</source><translation>Zwei Schwärme aus je vier Kopien starten mit demselben kleinen Modell. Im einen lernt jede Kopie nur aus ihren eigenen Antworten, im anderen teilen sie sie. Nichts verlässt diesen Computer, und dein eigenes Modell bleibt unberührt.</translation></message>
<message><source>Unlikely words count more</source><translation>Unwahrscheinliche Wörter zählen mehr</translation></message>
<message><source>Unlimited</source><translation>Unbegrenzt</translation></message>
<message><source>Unlock it; on Linux, GNOME Keyring or KWallet has to run. Waggle keeps a token nowhere else.</source><translation>Entsperre ihn; unter Linux muss GNOME Keyring oder KWallet laufen. Waggle bewahrt ein Token nirgends sonst auf.</translation></message>
<message><source>Unpack it first.</source><translation>Entpacke sie zuerst.</translation></message>
<message><source>Until I am away</source><translation>Bis ich weg bin</translation></message>
<message><source>Until it is plugged in.</source><translation>Bis der Computer wieder am Netz ist.</translation></message>
<message><source>Until the first round is saved, both are the same model.</source><translation>Bis die erste Runde gesichert ist, sind beide dasselbe Modell.</translation></message>
<message><source>Until tomorrow morning</source><translation>Bis morgen früh</translation></message>
<message><source>Update Waggle to go on from it.</source><translation>Aktualisiere Waggle, um damit weiterzumachen.</translation></message>
<message><source>Update Waggle, or have the charter corrected.</source><translation>Aktualisiere Waggle, oder lass die Charta berichtigen.</translation></message>
<message><source>Update Waggle.</source><translation>Aktualisiere Waggle.</translation></message>
<message><source>Update rule</source><translation>Lernregel</translation></message>
<message><source>Use %1.</source><translation>Verwende %1.</translation></message>
<message><source>Use 0 for exact numbers.</source><translation>Nimm 0 für genaue Zahlen.</translation></message>
<message><source>Use letters, numbers and spaces.</source><translation>Nimm Buchstaben, Ziffern und Leerzeichen.</translation></message>
<message><source>Use of %1</source><translation>Nutzung von %1</translation></message>
<message><source>Use of this computer</source><translation>Nutzung dieses Computers</translation></message>
<message><source>Use this model</source><translation>Dieses Modell nehmen</translation></message>
<message><source>Used %1 of its %2 examples.</source><translation>%1 seiner %2 Beispiele genutzt.</translation></message>
<message><source>Useful examples</source><translation>Nützliche Beispiele</translation></message>
<message><source>Uses a quarter of the processor's cores, at least one, and gives way to other programs.</source><translation>Nutzt ein Viertel der Prozessorkerne, mindestens einen, und lässt anderen Programmen den Vortritt.</translation></message>
<message><source>Valid backup of %1, your current identity.</source><translation>Gültige Sicherung von %1, deiner jetzigen Identität.</translation></message>
<message><source>Valid backup of %1. This is not your current identity.</source><translation>Gültige Sicherung von %1. Das ist nicht deine jetzige Identität.</translation></message>
<message><source>Verbatim, newest first. Kept in memory only.</source><translation>Wörtlich, neueste zuerst. Nur im Speicher gehalten.</translation></message>
<message><source>Waggle %1 is the newest.</source><translation>Waggle %1 ist das neueste.</translation></message>
<message><source>Waggle %1 of %2 is newer than this one (%3).</source><translation>Waggle %1 vom %2 ist neuer als dieses hier (%3).</translation></message>
<message><source>Waggle cannot open a proposed change of a model.</source><translation>Waggle kann keine vorgeschlagene Änderung eines Modells öffnen.</translation></message>
<message><source>Waggle cannot tell which of your swarms you trained in.</source><translation>Waggle weiß nicht, in welchem deiner Schwärme du trainiert hast.</translation></message>
<message><source>Waggle cannot tell which of your swarms you trained in: choose one.</source><translation>Waggle weiß nicht, in welchem deiner Schwärme du trainiert hast: Wähle einen.</translation></message>
<message><source>Waggle cannot train models of the type %1 on this computer.</source><translation>Waggle kann Modelle vom Typ %1 auf diesem Computer nicht trainieren.</translation></message>
<message><source>Waggle cannot train models of the type %1.</source><translation>Waggle kann Modelle vom Typ %1 nicht trainieren.</translation></message>
<message><source>Waggle checks first whether it fits</source><translation>Waggle prüft zuerst, ob es passt</translation></message>
<message><source>Waggle computes on the processor until all of CUDA is here.</source><translation>Waggle rechnet auf dem Prozessor, bis CUDA ganz da ist.</translation></message>
<message><source>Waggle computes on the processor. With CUDA it computes on this card.</source><translation>Waggle rechnet auf dem Prozessor. Mit CUDA rechnet es auf dieser Karte.</translation></message>
<message><source>Waggle could not switch to %1</source><translation>Waggle konnte nicht zu %1 wechseln</translation></message>
<message><source>Waggle couldn't start its answer checker.</source><translation>Waggle konnte seinen Prüfer nicht starten.</translation></message>
<message><source>Waggle does not download the GGUF file %1.</source><translation>Waggle lädt die GGUF-Datei %1 nicht herunter.</translation></message>
<message><source>Waggle does not know %1 rope.</source><translation>Waggle kennt %1-Rope nicht.</translation></message>
<message><source>Waggle does not know capped scores and attention both ways.</source><translation>Waggle kennt keine begrenzten Bewertungen und keine Aufmerksamkeit in beide Richtungen.</translation></message>
<message><source>Waggle does not know how GGUF calls the tokens of this model.</source><translation>Waggle weiß nicht, wie GGUF die Token dieses Modells nennt.</translation></message>
<message><source>Waggle does not know the activation %1.</source><translation>Waggle kennt die Aktivierung %1 nicht.</translation></message>
<message><source>Waggle does not know these rotary embeddings in models of type gemma3_text.</source><translation>Waggle kennt diese Rope-Angaben in Modellen der Art gemma3_text nicht.</translation></message>
<message><source>Waggle does not know these types of layers in models of type %1.</source><translation>Waggle kennt diese Arten von Schichten in Modellen der Art %1 nicht.</translation></message>
<message><source>Waggle does not know weights in %1.</source><translation>Waggle kennt keine Gewichte in %1.</translation></message>
<message><source>Waggle does not train quantised models.</source><translation>Waggle trainiert keine quantisierten Modelle.</translation></message>
<message><source>Waggle goes through web proxies (HTTP), not through SOCKS: choose one, or none.</source><translation>Waggle geht durch Web-Proxys (HTTP), nicht durch SOCKS: Wähle einen solchen oder keinen.</translation></message>
<message><source>Waggle is going there; your model comes along.</source><translation>Waggle wechselt dorthin; dein Modell kommt mit.</translation></message>
<message><source>Waggle is open already, but its window does not answer.</source><translation>Waggle ist schon geöffnet, aber sein Fenster antwortet nicht.</translation></message>
<message><source>Waggle is starting; your swarms appear in a few seconds.</source><translation>Waggle startet; deine Schwärme erscheinen in ein paar Sekunden.</translation></message>
<message><source>Waggle is still starting.</source><translation>Waggle startet noch.</translation></message>
<message><source>Waggle keeps its own in the folder events of its home.</source><translation>Waggle bewahrt seine im Ordner events auf, dort, wo es alles aufbewahrt.</translation></message>
<message><source>Waggle keeps running in the background</source><translation>Waggle läuft im Hintergrund weiter</translation></message>
<message><source>Waggle keeps trying.</source><translation>Waggle versucht es weiter.</translation></message>
<message><source>Waggle looks again every few seconds and continues by itself. What your model learned is kept.</source><translation>Waggle sieht alle paar Sekunden nach und macht von selbst weiter. Was dein Modell gelernt hat, bleibt.</translation></message>
<message><source>Waggle looks for peers once it has started.</source><translation>Waggle sucht Peers, sobald es gestartet ist.</translation></message>
<message><source>Waggle looks only when you ask, and installs nothing by itself.</source><translation>Waggle sieht nur nach, wenn du fragst, und installiert nichts von selbst.</translation></message>
<message><source>Waggle on %1</source><translation>Waggle auf %1</translation></message>
<message><source>Waggle opens minimized</source><translation>Waggle öffnet sich minimiert</translation></message>
<message numerus="yes"><source>Waggle removed %n downloaded models to stay under your limit of %1 GB.</source><translation><numerusform>Waggle hat ein heruntergeladenes Modell entfernt, um unter deiner Grenze von %1 GB zu bleiben.</numerusform><numerusform>Waggle hat %n heruntergeladene Modelle entfernt, um unter deiner Grenze von %1 GB zu bleiben.</numerusform></translation></message>
<message><source>Waggle removed old saved states to stay under your limit of %1 GB.</source><translation>Waggle hat alte gespeicherte Stände entfernt, um unter deiner Grenze von %1 GB zu bleiben.</translation></message>
<message><source>Waggle takes files of questions: JSON lines (.jsonl) or tables (.csv), up to four.</source><translation>Waggle nimmt Dateien mit Fragen: JSON-Zeilen (.jsonl) oder Tabellen (.csv), bis zu vier.</translation></message>
<message><source>Waggle trains a small language model here, in the background, together with other computers.</source><translation>Waggle trainiert hier ein kleines Sprachmodell, im Hintergrund, zusammen mit anderen Computern.</translation></message>
<message><source>Waggle tries again every minute and continues by itself. What your model learned is kept.</source><translation>Waggle versucht es jede Minute neu und macht von selbst weiter. Was dein Modell gelernt hat, bleibt.</translation></message>
<message><source>Waggle was upgraded or moved while it runs.</source><translation>Waggle wurde aktualisiert oder verschoben, während es läuft.</translation></message>
<message><source>Waggle writes GGUF files of %1, and this model is of type %2.</source><translation>Waggle schreibt GGUF-Dateien von %1, und dieses Modell ist vom Typ %2.</translation></message>
<message><source>Waggle writes GGUF files of models with byte-level tokens, and this model has others.</source><translation>Waggle schreibt GGUF-Dateien von Modellen mit Byte-Token, und dieses Modell hat andere.</translation></message>
<message><source>Waggle writes no GGUF files of models with sliding windows.</source><translation>Waggle schreibt keine GGUF-Dateien von Modellen mit gleitenden Fenstern.</translation></message>
<message><source>Waggle's questions</source><translation>Von Waggle</translation></message>
<message><source>Waggle: ordinary computers learn together, peer to peer</source><translation>Waggle: gewöhnliche Computer lernen zusammen, Peer zu Peer</translation></message>
<message><source>Wait 10 minutes</source><translation>10 Minuten warten</translation></message>
<message><source>Wait 3 minutes</source><translation>3 Minuten warten</translation></message>
<message><source>Wait 30 minutes</source><translation>30 Minuten warten</translation></message>
<message><source>Wait a moment, or look at its log.</source><translation>Warte einen Moment, oder sieh in sein Protokoll.</translation></message>
<message><source>Wait for it, or stop it.</source><translation>Warte sie ab oder halte sie an.</translation></message>
<message><source>Wait until that is done, then start again.</source><translation>Warte, bis das fertig ist, und starte dann neu.</translation></message>
<message><source>Wait until that is done, then try again.</source><translation>Warte, bis das fertig ist, und versuch es noch einmal.</translation></message>
<message><source>Wait until that is done.</source><translation>Warte, bis das fertig ist.</translation></message>
<message><source>Waiting</source><translation>Wartet</translation></message>
<message><source>Waiting for a better moment.</source><translation>Wartet auf einen besseren Moment.</translation></message>
<message><source>Waiting for the engine that runs without a window</source><translation>Warten auf die Engine, die ohne Fenster läuft</translation></message>
<message><source>Waiting for you</source><translation>Wartet auf dich</translation></message>
<message><source>Waiting for your choice on Home.</source><translation>Wartet auf deine Wahl auf der Startseite.</translation></message>
<message><source>Waiting to be judged.</source><translation>Wartet auf die Bewertung.</translation></message>
<message><source>Waiting to be used for learning.</source><translation>Wartet darauf, zum Lernen genutzt zu werden.</translation></message>
<message><source>Waiting until another engine has left this folder</source><translation>Warten, bis eine andere Engine diesen Ordner verlassen hat</translation></message>
<message><source>Watch an example</source><translation>Ein Beispiel ansehen</translation></message>
<message><source>Watch it try</source><translation>Zusehen</translation></message>
<message><source>Watch the race</source><translation>Rennen ansehen</translation></message>
<message><source>Watts while training</source><translation>Watt beim Training</translation></message>
<message><source>Weakest first</source><translation>Schwächstes zuerst</translation></message>
<message><source>Wed</source><translation>Mi</translation></message>
<message><source>Wednesday</source><translation>Mittwoch</translation></message>
<message><source>Weights &amp; Biases</source><translation>Weights &amp; Biases</translation></message>
<message><source>Weights in 4 bits need bitsandbytes, which is not installed.</source><translation>Gewichte in 4 Bit brauchen bitsandbytes, das nicht installiert ist.</translation></message>
<message><source>What answered is not Hugging Face.</source><translation>Was antwortete, ist nicht Hugging Face.</translation></message>
<message><source>What computes on your NVIDIA graphics card.</source><translation>Was auf deiner NVIDIA-Grafikkarte rechnet.</translation></message>
<message><source>What does Waggle do?</source><translation>Was macht Waggle?</translation></message>
<message><source>What does it cost?</source><translation>Was kostet es?</translation></message>
<message><source>What else it asks</source><translation>Was er sonst noch fragt</translation></message>
<message><source>What experiments keep to be faster next time.</source><translation>Was Experimente aufheben, um das nächste Mal schneller zu sein.</translation></message>
<message><source>What is 7 × 6?</source><translation>Was ist 7 × 6?</translation></message>
<message><source>What is shown</source><translation>Was gezeigt wird</translation></message>
<message><source>What is trained</source><translation>Was trainiert wird</translation></message>
<message><source>What it asks</source><translation>Was er fragt</translation></message>
<message><source>What it can do</source><translation>Was es kann</translation></message>
<message><source>What it does</source><translation>Was es tut</translation></message>
<message><source>What it has learned fits in a folder that other programs can open.</source><translation>Was es gelernt hat, passt in einen Ordner, den andere Programme öffnen können.</translation></message>
<message><source>What it has learned is kept. Choose another model, or another revision of it: owner/name@revision.</source><translation>Was es gelernt hat, bleibt. Wähle ein anderes Modell, oder eine andere Revision davon: owner/name@revision.</translation></message>
<message><source>What leaves my computer?</source><translation>Was verlässt meinen Computer?</translation></message>
<message><source>What next?</source><translation>Was jetzt?</translation></message>
<message><source>What some peers gave as questions of %1 was something else, and was refused.</source><translation>Was manche als Fragen von %1 gaben, war etwas anderes und wurde abgelehnt.</translation></message>
<message><source>What the axis counts</source><translation>Was die Achse zählt</translation></message>
<message><source>What the engine told, for replays and for reports.</source><translation>Was die Engine erzählt hat, zum Nachspielen und für Berichte.</translation></message>
<message><source>What the model runs on.</source><translation>Worauf das Modell läuft.</translation></message>
<message><source>What the swarm asks; the space bar chooses</source><translation>Was der Schwarm fragt; die Leertaste wählt</translation></message>
<message><source>What the swarm trains on, with an example</source><translation>Was der Schwarm übt, mit einem Beispiel</translation></message>
<message><source>What the words mean</source><translation>Was die Wörter bedeuten</translation></message>
<message><source>What this model has learned is kept.</source><translation>Was dieses Modell gelernt hat, bleibt.</translation></message>
<message><source>What was downloaded is kept.</source><translation>Was schon geladen ist, bleibt.</translation></message>
<message><source>What was downloaded is kept. Go on when there is a connection.</source><translation>Was schon geladen ist, bleibt. Lade weiter, wenn es eine Verbindung gibt.</translation></message>
<message><source>What was downloaded is kept. Try again when you are online.</source><translation>Was heruntergeladen ist, bleibt. Versuche es noch einmal, wenn du online bist.</translation></message>
<message><source>What was known of peers could not be read.</source><translation>Was über Peers bekannt war, ließ sich nicht lesen.</translation></message>
<message><source>What was known of peers could not be read: whom you muted or blocked counts again.</source><translation>Was über Peers bekannt war, ließ sich nicht lesen: Wen du stumm geschaltet oder gesperrt hast, zählt wieder.</translation></message>
<message><source>What was learned there gives answers that are no numbers.</source><translation>Was dort gelernt wurde, ergibt Antworten, die keine Zahlen sind.</translation></message>
<message><source>What was logged, for somebody who helps.</source><translation>Was mitgeschrieben wurde, für jemanden, der hilft.</translation></message>
<message><source>What was seen so far stays here until the next race.</source><translation>Was zu sehen war, bleibt bis zum nächsten Wettlauf hier.</translation></message>
<message><source>What you chose, and where this window stood.</source><translation>Was du gewählt hast, und wo dieses Fenster stand.</translation></message>
<message><source>What you share</source><translation>Was du teilst</translation></message>
<message><source>What you type, unless you share it</source><translation>Was du tippst, außer du teilst es ausdrücklich</translation></message>
<message><source>What you would share, and what stays on this computer</source><translation>Was du teilen würdest und was auf diesem Computer bleibt</translation></message>
<message><source>What your computer contributes is counted here from its first round on.</source><translation>Was dein Computer beiträgt, wird hier ab seiner ersten Runde gezählt.</translation></message>
<message><source>What your model is asked now</source><translation>Was dein Modell jetzt gefragt wird</translation></message>
<message><source>What your model learned is kept. Choose a swarm, or train alone for now.</source><translation>Was dein Modell gelernt hat, bleibt. Wähle einen Schwarm oder trainiere erst einmal allein.</translation></message>
<message><source>What your model learned is read back and checked.</source><translation>Was dein Modell gelernt hat, wird geladen und geprüft.</translation></message>
<message><source>What your model's answers earn. All on one scale, up to %1</source><translation>Was die Antworten deines Modells erzielen. Alle auf einer Skala bis %1</translation></message>
<message><source>What your models learned</source><translation>Was deine Modelle lernten</translation></message>
<message><source>When another swarm suits your model better</source><translation>Wenn ein anderer Schwarm besser zu deinem Modell passt</translation></message>
<message><source>When other programs want the processor too.</source><translation>Wenn auch andere Programme den Prozessor brauchen.</translation></message>
<message><source>When something goes wrong</source><translation>Wenn etwas schiefgeht</translation></message>
<message><source>When to train</source><translation>Wann trainiert wird</translation></message>
<message><source>When you log in</source><translation>Wenn du dich anmeldest</translation></message>
<message><source>When your model solves something for the first time</source><translation>Wenn dein Modell etwas zum ersten Mal löst</translation></message>
<message><source>Where data costs money, if the system reports it.</source><translation>Wo Daten Geld kosten, wenn das System es meldet.</translation></message>
<message><source>Where others reach this computer. A fixed one can be opened in a router.</source><translation>Wo andere diesen Computer erreichen. Ein fester lässt sich im Router öffnen.</translation></message>
<message><source>Where own answers fail</source><translation>Wo eigene Antworten scheitern</translation></message>
<message><source>Where pip installed Waggle, its torch brings CUDA along on Linux.</source><translation>Wo pip Waggle installiert hat, bringt torch unter Linux CUDA mit.</translation></message>
<message><source>Where the backup lies</source><translation>Wo die Sicherung liegt</translation></message>
<message><source>Whether you had paused could not be read, so training is paused.</source><translation>Ob du pausiert hattest, ließ sich nicht lesen, also pausiert das Training.</translation></message>
<message><source>Which examples of peers your model learns from, and how strongly.</source><translation>Von welchen Beispielen der Peers dein Modell lernt, und wie stark.</translation></message>
<message><source>Which model it is meant for</source><translation>Für welches Modell er gedacht ist</translation></message>
<message><source>Which model, and with whom?</source><translation>Welches Modell, und mit wem?</translation></message>
<message><source>Which of them light up</source><translation>Was leuchtet auf</translation></message>
<message><source>Which one is the model of now?</source><translation>Welche ist vom Modell von heute?</translation></message>
<message><source>Which one is your model now?</source><translation>Welche ist von deinem Modell jetzt?</translation></message>
<message><source>While it trains. The screen may go dark, and a closed lid still sleeps.</source><translation>Während er trainiert. Der Bildschirm darf dunkel werden, und zugeklappt schläft er trotzdem.</translation></message>
<message><source>While plugged in</source><translation>Am Netzteil</translation></message>
<message><source>While this computer is in the swarm, it serves a page for a projector, which shows who is here and what was found, and gives everybody on your network who opens it an invite. Your network sees that Waggle runs here, and computers with Windows take part through this one.</source><translation>Solange dieser Computer im Schwarm ist, bietet er eine Seite für einen Projektor an. Sie zeigt, wer da ist und was gefunden wurde, und gibt allen in deinem Netz, die sie öffnen, eine Einladung. Dein Netz sieht, dass Waggle hier läuft, und Computer mit Windows nehmen über diesen teil.</translation></message>
<message><source>While this window is not in front</source><translation>Solange dieses Fenster nicht vorn ist</translation></message>
<message><source>While you use the computer</source><translation>Während du den Computer benutzt</translation></message>
<message><source>Who are you?</source><translation>Wer bist du?</translation></message>
<message><source>Who should your model learn with?</source><translation>Mit wem soll dein Modell lernen?</translation></message>
<message><source>Who you are</source><translation>Wer du bist</translation></message>
<message><source>Whoever opens them sees chosen names, and can join.</source><translation>Wer sie öffnet, sieht gewählte Namen und kann beitreten.</translation></message>
<message><source>Whoever wrote the charter has to add "questions_digest": "%1". That makes a swarm of its own, with new invites.</source><translation>Wer die Charta geschrieben hat, muss "questions_digest": "%1" hinzufügen. Das ergibt einen eigenen Schwarm, mit neuen Einladungen.</translation></message>
<message><source>Whoever wrote the charter has to choose another specialty.</source><translation>Wer die Charta geschrieben hat, muss ein anderes Fachgebiet wählen.</translation></message>
<message><source>Whose questions</source><translation>Wessen Fragen</translation></message>
<message><source>Why a test first</source><translation>Warum zuerst ein Test</translation></message>
<message><source>Why it begins so low</source><translation>Warum es so niedrig beginnt</translation></message>
<message><source>Why it contributes or waits</source><translation>Warum es beiträgt oder wartet</translation></message>
<message><source>Why?</source><translation>Warum?</translation></message>
<message><source>Window and engine must be of one version.</source><translation>Fenster und Engine müssen von derselben Version sein.</translation></message>
<message><source>With %1 of them your model earned %2 of 1 on average. Its best answer:</source><translation>Dein Modell bekam für %1 davon im Mittel %2 von 1. Beste Antwort:</translation></message>
<message><source>With more than one, each step learns from a part of the examples.</source><translation>Bei mehr als einem lernt jeder Schritt aus einem Teil der Beispiele.</translation></message>
<message><source>With peers</source><translation>Mit Peers</translation></message>
<message><source>With so few questions, it may really be %1 to %2 of 100. A full test follows.</source><translation>Bei so wenigen Fragen können es in Wirklichkeit %1 bis %2 von 100 sein. Ein voller Test folgt.</translation></message>
<message><source>With whom</source><translation>Mit wem</translation></message>
<message><source>Without a tray, closing ends Waggle.</source><translation>Ohne Infobereich beendet das Schließen Waggle.</translation></message>
<message><source>Without an invite to it you can never come back.</source><translation>Ohne eine Einladung kommst du nie wieder hinein.</translation></message>
<message><source>Word problems</source><translation>Textaufgaben</translation></message>
<message><source>Word sequence reversal</source><translation>Wortfolge umkehren</translation></message>
<message><source>Word sorting</source><translation>Wörter sortieren</translation></message>
<message><source>Worked out from the first round on.</source><translation>Wird von der ersten Runde an ausgerechnet.</translation></message>
<message><source>Works with routers that allow UPnP.</source><translation>Geht mit Routern, die UPnP erlauben.</translation></message>
<message><source>Write a message; Enter sends it, Shift+Enter adds a line</source><translation>Schreibe eine Nachricht; Eingabe sendet sie, Umschalt+Eingabe fügt eine Zeile ein</translation></message>
<message><source>Write a text in quotes, or a number.</source><translation>Schreibe einen Text in Anführungszeichen oder eine Zahl.</translation></message>
<message><source>Write https:// in front of it, or unset %1.</source><translation>Schreibe https:// davor, oder lösche die Variable %1.</translation></message>
<message><source>Write it in quotes.</source><translation>Schreibe sie in Anführungszeichen.</translation></message>
<message><source>Write messages as [{"role": "user", "content": "..."}].</source><translation>Schreibe Nachrichten als [{"role": "user", "content": "..."}].</translation></message>
<message><source>Write one object on each line, such as {"question": "...", "answer": "..."}.</source><translation>Schreibe in jede Zeile ein Objekt, etwa {"question": "...", "answer": "..."}.</translation></message>
<message><source>Write one on each line, with its answer.</source><translation>Schreib in jede Zeile eine, mit ihrer Antwort.</translation></message>
<message><source>Write something first.</source><translation>Schreib zuerst etwas.</translation></message>
<message><source>Write the questions as CSV or JSON lines.</source><translation>Schreibe die Fragen als CSV oder JSON-Zeilen.</translation></message>
<message><source>Write them as [{"role": "user", "content": "..."}].</source><translation>Schreibe sie als [{"role": "user", "content": "..."}].</translation></message>
<message><source>Writing it as it is after the step in progress.</source><translation>Es wird geschrieben, wie es nach dem laufenden Schritt ist.</translation></message>
<message><source>Written by the creator of this swarm. Waggle did not check these questions and their answers.</source><translation>Geschrieben von der Person, die diesen Schwarm angelegt hat. Waggle hat diese Fragen und Antworten nicht geprüft.</translation></message>
<message><source>Written to %1, read again, and it opens.</source><translation>Nach %1 geschrieben, wieder gelesen, und sie öffnet sich.</translation></message>
<message numerus="yes"><source>Written to %1: %n rounds of training.</source><translation><numerusform>Nach %1 geschrieben: %n Runde Training.</numerusform><numerusform>Nach %1 geschrieben: %n Runden Training.</numerusform></translation></message>
<message><source>You</source><translation>Du</translation></message>
<message><source>You answer a puzzle, then your model does.</source><translation>Erst löst du ein Rätsel, dann dein Modell.</translation></message>
<message><source>You are away.</source><translation>Du bist weg.</translation></message>
<message><source>You are here</source><translation>Du bist hier</translation></message>
<message><source>You are in %1</source><translation>Du bist in %1</translation></message>
<message><source>You are in this swarm already.</source><translation>Du bist schon in diesem Schwarm.</translation></message>
<message><source>You are in this swarm, but have not met these computers yet. Joining them takes a few seconds. Your model keeps what it learned; round %2 continues.</source><translation>Du bist in diesem Schwarm, hast diese Computer aber noch nicht getroffen. Der Beitritt dauert einige Sekunden. Dein Modell behält, was es gelernt hat; Runde %2 geht weiter.</translation></message>
<message><source>You are still training %1.</source><translation>Du trainierst weiter %1.</translation></message>
<message><source>You are using the computer.</source><translation>Du benutzt den Computer.</translation></message>
<message><source>You blocked it: neither of you learns from the other.</source><translation>Von dir blockiert: Keiner lernt vom anderen.</translation></message>
<message><source>You can come back at any time.</source><translation>Du kannst jederzeit zurück.</translation></message>
<message numerus="yes"><source>You can download them again.</source><translation><numerusform>Du kannst es wieder herunterladen.</numerusform><numerusform>Du kannst sie wieder herunterladen.</numerusform></translation></message>
<message><source>You can leave this page: Waggle tells you how it ends.</source><translation>Du kannst diese Seite verlassen: Waggle meldet, wie es ausgeht.</translation></message>
<message><source>You chose to train on this computer only: going there ends that.</source><translation>Du wolltest nur auf diesem Computer trainieren: Das endet damit, dass du dorthin gehst.</translation></message>
<message><source>You found it.</source><translation>Gefunden.</translation></message>
<message><source>You gave</source><translation>Gegeben</translation></message>
<message><source>You get it once you have accepted its licence on Hugging Face. Waggle shows how.</source><translation>Du bekommst es, sobald du seine Lizenz auf Hugging Face angenommen hast. Waggle zeigt, wie.</translation></message>
<message><source>You know this swarm.</source><translation>Du kennst diesen Schwarm.</translation></message>
<message numerus="yes"><source>You learned from %n answers</source><translation><numerusform>Du lerntest von %n Antwort</numerusform><numerusform>Du lerntest von %n Antworten</numerusform></translation></message>
<message numerus="yes"><source>You learned from %n right answers</source><translation><numerusform>Du lerntest von %n richtigen Antwort</numerusform><numerusform>Du lerntest von %n richtigen Antworten</numerusform></translation></message>
<message><source>You muted it: nothing is learned from it, but it still gets your examples.</source><translation>Du hast ihn stumm geschaltet: Nichts wird von ihm gelernt, aber er bekommt weiter deine Beispiele.</translation></message>
<message><source>You reach others; no address is known at which they could reach this computer.</source><translation>Du erreichst andere; es ist keine Adresse bekannt, an der sie diesen Computer erreichen könnten.</translation></message>
<message><source>You see what the swarm is; nothing is joined until you say so.</source><translation>Du siehst, was der Schwarm ist; beigetreten wird erst, wenn du es sagst.</translation></message>
<message><source>You see whose identity it is before anything changes. The identity of now is kept beside it, never overwritten.</source><translation>Du siehst, wessen Identität es ist, bevor sich etwas ändert. Die jetzige wird daneben aufbewahrt, nie überschrieben.</translation></message>
<message><source>You share</source><translation>Du teilst</translation></message>
<message><source>You shared an answer to this question already.</source><translation>Du hast zu dieser Frage schon eine Antwort geteilt.</translation></message>
<message><source>You take part. Your model's first answers are marked after its next round, those of others as they come.</source><translation>Du nimmst teil. Die ersten Antworten deines Modells werden nach seiner nächsten Runde bewertet, die anderer, sobald sie kommen.</translation></message>
<message><source>You train alone</source><translation>Du trainierst allein</translation></message>
<message><source>You train alone: nobody answers. The others may be off, or a firewall is in the way.</source><translation>Du trainierst allein: Niemand antwortet. Die anderen sind vielleicht aus, oder eine Firewall steht im Weg.</translation></message>
<message><source>You train alone; invite someone to learn together.</source><translation>Du trainierst allein; lade jemanden ein, um gemeinsam zu lernen.</translation></message>
<message numerus="yes"><source>You trained on %n days</source><translation><numerusform>Du hast an %n Tag trainiert</numerusform><numerusform>Du hast an %n Tagen trainiert</numerusform></translation></message>
<message><source>You used</source><translation>Genutzt</translation></message>
<message><source>You went back to an earlier round. </source><translation>Du bist bei einer früheren Runde. </translation></message>
<message><source>You will share</source><translation>Du teilst</translation></message>
<message><source>You're the only one here. Invite someone.</source><translation>Außer dir ist niemand hier. Lade jemanden ein.</translation></message>
<message><source>You, as the swarm sees you</source><translation>Du, wie der Schwarm dich sieht</translation></message>
<message><source>You: %1</source><translation>Du: %1</translation></message>
<message><source>You: %1 on average, %2 in this round</source><translation>Du: %1 im Mittel, %2 in dieser Runde</translation></message>
<message numerus="yes"><source>Your %n rounds of training can continue from their own saved weights, or you start over with the new version.</source><translation><numerusform>Deine %n Runde Training kann von ihren eigenen gespeicherten Gewichten aus weitergehen, oder du fängst mit der neuen Fassung neu an.</numerusform><numerusform>Deine %n Runden Training können von ihren eigenen gespeicherten Gewichten aus weitergehen, oder du fängst mit der neuen Fassung neu an.</numerusform></translation></message>
<message numerus="yes"><source>Your %n rounds of training cannot continue with the new version. Start over, or put the old files back.</source><translation><numerusform>Deine %n Runde Training kann mit der neuen Fassung nicht weitergehen. Fang neu an, oder leg die alten Dateien zurück.</numerusform><numerusform>Deine %n Runden Training können mit der neuen Fassung nicht weitergehen. Fang neu an, oder leg die alten Dateien zurück.</numerusform></translation></message>
<message><source>Your Hugging Face token may not write to %1.</source><translation>Dein Hugging-Face-Token darf nicht in %1 schreiben.</translation></message>
<message><source>Your NVIDIA graphics card</source><translation>Deine NVIDIA-Grafikkarte</translation></message>
<message><source>Your answer</source><translation>Deine Antwort</translation></message>
<message><source>Your answer first, if you like</source><translation>Zuerst deine Antwort, wenn du magst</translation></message>
<message><source>Your answer first, if you like. It stays on this computer.</source><translation>Erst deine Antwort, wenn du magst. Sie bleibt auf diesem Computer.</translation></message>
<message><source>Your answer goes to the swarm, labelled as human. Your own model does not learn from it.</source><translation>Deine Antwort geht an den Schwarm, als menschlich gekennzeichnet. Dein eigenes Modell lernt nicht daraus.</translation></message>
<message><source>Your answer is shared when you ask the model: everybody can read it, labelled as human.</source><translation>Deine Antwort wird geteilt, wenn du das Modell fragst: Jeder kann sie lesen, als menschlich gekennzeichnet.</translation></message>
<message><source>Your answer was not shared: it is too long, or has characters that do not travel.</source><translation>Deine Antwort wurde nicht geteilt: Sie ist zu lang oder enthält Zeichen, die nicht mitreisen.</translation></message>
<message><source>Your answers on Try it may teach other models. Everybody in the swarm can read them, labelled as human.</source><translation>Deine Antworten unter „Probieren“ können andere Modelle etwas lehren. Alle im Schwarm können sie lesen, als menschlich gekennzeichnet.</translation></message>
<message><source>Your computer stopped the training, probably because memory ran short.</source><translation>Dein Computer hat das Training beendet, vermutlich weil der Speicher knapp war.</translation></message>
<message><source>Your days as a table, newest first</source><translation>Deine Tage als Tabelle, neueste zuerst</translation></message>
<message><source>Your disk is slow to answer right now.</source><translation>Deine Festplatte antwortet gerade langsam.</translation></message>
<message><source>Your engine runs on %1, which cannot see folders of this computer.</source><translation>Deine Engine läuft auf %1 und sieht keine Ordner dieses Computers.</translation></message>
<message><source>Your engine runs on %1. There, `waggle swarm create --questions FILE` makes a swarm from a file.</source><translation>Deine Engine läuft auf %1. Dort macht `waggle swarm create --questions FILE` aus einer Datei einen Schwarm.</translation></message>
<message><source>Your files</source><translation>Deine Dateien</translation></message>
<message><source>Your files, your real name, the model itself, and what you write to it in a chat.</source><translation>Deine Dateien, dein echter Name, das Modell selbst und was du ihm im Chat schreibst.</translation></message>
<message><source>Your key is chosen too: without a backup nobody can be you again.</source><translation>Auch dein Schlüssel ist gewählt: Ohne Sicherung kann niemand je wieder du sein.</translation></message>
<message><source>Your key. Without it, or a backup of it, nobody can be you again.</source><translation>Dein Schlüssel. Ohne ihn oder eine Sicherung kann niemand wieder du sein.</translation></message>
<message><source>Your message</source><translation>Deine Nachricht</translation></message>
<message><source>Your messages are not saved or shared.</source><translation>Deine Nachrichten werden weder gespeichert noch geteilt.</translation></message>
<message><source>Your model answers a short exam every ten minutes at most, and others see and grade its answers.</source><translation>Dein Modell beantwortet höchstens alle zehn Minuten eine kurze Prüfung; andere sehen und bewerten seine Antworten.</translation></message>
<message><source>Your model answers five of them now; a large one takes minutes. You need not wait.</source><translation>Dein Modell beantwortet gerade fünf davon; ein großes braucht Minuten. Du musst nicht warten.</translation></message>
<message><source>Your model answers small puzzles, eight ways each; Waggle checks which are right.</source><translation>Dein Modell beantwortet kleine Rätsel, jedes auf acht Arten; Waggle prüft, welche stimmen.</translation></message>
<message><source>Your model answers some questions, then learns from the answers.</source><translation>Dein Modell beantwortet einige Fragen und lernt dann aus den Antworten.</translation></message>
<message><source>Your model did not try them.</source><translation>Dein Modell hat sie nicht versucht.</translation></message>
<message><source>Your model is %1</source><translation>Dein Modell ist %1</translation></message>
<message><source>Your model is %1, on this computer only.</source><translation>Dein Modell %1, nur auf diesem Computer.</translation></message>
<message><source>Your model is %1, with %2.</source><translation>Dein Modell %1, mit %2.</translation></message>
<message><source>Your model is getting ready.</source><translation>Dein Modell wird vorbereitet.</translation></message>
<message><source>Your model is in its first round.</source><translation>Dein Modell ist in seiner ersten Runde.</translation></message>
<message><source>Your model is not available right now.</source><translation>Dein Modell ist gerade nicht verfügbar.</translation></message>
<message><source>Your model is not open now, so it did not try them.</source><translation>Dein Modell ist gerade nicht offen und hat sie deshalb nicht versucht.</translation></message>
<message><source>Your model is ready, and trains.</source><translation>Dein Modell ist bereit und trainiert.</translation></message>
<message><source>Your model is safe.</source><translation>Dein Modell ist sicher.</translation></message>
<message><source>Your model is taking its first test.</source><translation>Dein Modell macht seinen ersten Test.</translation></message>
<message><source>Your model learned from %1 and %2.</source><translation>Dein Modell hat aus %1 und %2 gelernt.</translation></message>
<message><source>Your model learned from %1.</source><translation>Dein Modell hat aus %1 gelernt.</translation></message>
<message><source>Your model learns from how they differ. More of them take longer.</source><translation>Dein Modell lernt aus ihren Unterschieden. Mehr davon dauern länger.</translation></message>
<message><source>Your model learns from this round next.</source><translation>Als Nächstes lernt dein Modell aus dieser Runde.</translation></message>
<message><source>Your model learns from this round when training resumes.</source><translation>Dein Modell lernt aus dieser Runde, sobald das Training weitergeht.</translation></message>
<message><source>Your model reads %1 tokens at a time, a question and its answer together; %2 of %3 questions are longer.</source><translation>Dein Modell liest %1 Tokens auf einmal, Frage und Antwort zusammen; %2 von %3 Fragen sind länger.</translation></message>
<message><source>Your model solved its first question: %1</source><translation>Dein Modell löste seine erste Frage: %1</translation></message>
<message><source>Your model solves %1 new questions.</source><translation>Dein Modell löst %1 neue Fragen.</translation></message>
<message><source>Your model solves %1 questions of a short test.</source><translation>Dein Modell löst %1 Fragen eines kurzen Tests.</translation></message>
<message><source>Your model trains alone, on questions of %1, until you choose your swarm.</source><translation>Dein Modell trainiert allein, mit Fragen von %1, bis du deinen Schwarm wählst.</translation></message>
<message><source>Your model trains on its own. Name the gateway of a member in Settings.</source><translation>Dein Modell trainiert für sich allein. Gib in den Optionen das Gateway eines Mitglieds an.</translation></message>
<message><source>Your model trains on this computer only, by your choice.</source><translation>Dein Modell trainiert nur auf diesem Computer, wie du es gewählt hast.</translation></message>
<message><source>Your model's answers</source><translation>Antworten deines Modells</translation></message>
<message><source>Your model's answers as plain text, a made-up name and a public key, your network address (visible to peers), and answers of your own where you choose to share them.</source><translation>Antworten deines Modells als Klartext, einen erfundenen Namen und einen öffentlichen Schlüssel, deine IP-Adresse (für Peers sichtbar) und eigene Antworten, wo du sie teilen willst.</translation></message>
<message><source>Your model's answers to an exam</source><translation>Antworten deines Modells auf eine Prüfung</translation></message>
<message><source>Your model's answers, and yours, labelled as human</source><translation>Antworten deines Modells und deine, als menschlich gekennzeichnet</translation></message>
<message><source>Your model's answers, as plain text</source><translation>Antworten deines Modells, als Klartext</translation></message>
<message><source>Your model, its progress and your name stay.</source><translation>Dein Modell, sein Fortschritt und dein Name bleiben.</translation></message>
<message><source>Your model, round %1</source><translation>Dein Modell, Runde %1</translation></message>
<message><source>Your name and picture are made from a private key. Back it up to keep them on another computer.</source><translation>Dein Name und dein Bild entstehen aus einem privaten Schlüssel. Sichere ihn, um sie auf einem anderen Computer zu behalten.</translation></message>
<message><source>Your name in this swarm (optional)</source><translation>Dein Name in diesem Schwarm (freiwillig)</translation></message>
<message><source>Your network</source><translation>Dein Netz</translation></message>
<message><source>Your network address, to peers you meet</source><translation>Deine IP-Adresse, sichtbar für Peers</translation></message>
<message><source>Your own</source><translation>Eigene</translation></message>
<message><source>Your own answer</source><translation>Deine eigene Antwort</translation></message>
<message><source>Your own answer, shared and labelled as human. Your model does not learn from it.</source><translation>Deine eigene Antwort, geteilt und als menschlich gekennzeichnet. Dein Modell lernt nicht daraus.</translation></message>
<message><source>Your own answers</source><translation>Deine eigenen Antworten</translation></message>
<message><source>Your own model is not affected.</source><translation>Dein eigenes Modell ist nicht betroffen.</translation></message>
<message><source>Your real name and e-mail address</source><translation>Dein echter Name und deine E-Mail-Adresse</translation></message>
<message><source>Your rules</source><translation>Deine Regeln</translation></message>
<message><source>Your rules wait until %1.</source><translation>Deine Regeln warten bis %1.</translation></message>
<message><source>Your settings of before are in %1; all is set as it ships.</source><translation>Deine Optionen von vorher sind in %1; alles ist eingestellt wie bei der Auslieferung.</translation></message>
<message><source>Your week has no hour for it.</source><translation>Deine Woche hat keine Stunde dafür.</translation></message>
<message><source>Your week leaves this hour out.</source><translation>Deine Woche lässt diese Stunde aus.</translation></message>
<message><source>Your week says so.</source><translation>Deine Woche erlaubt es.</translation></message>
<message><source>`waggle engine` converts it.</source><translation>`waggle engine` wandelt sie um.</translation></message>
<message><source>`waggle engine` downloads it.</source><translation>`waggle engine` lädt es.</translation></message>
<message><source>`waggle history` prints a table without it.</source><translation>`waggle history` gibt ohne es eine Tabelle aus.</translation></message>
<message><source>`waggle repeat --write FILE` writes one.</source><translation>`waggle repeat --write DATEI` schreibt eine.</translation></message>
<message><source>a PDF</source><translation>ein PDF</translation></message>
<message><source>a Parquet file</source><translation>eine Parquet-Datei</translation></message>
<message><source>a level that the swarm does not have</source><translation>eine Stufe, die der Schwarm nicht hat</translation></message>
<message><source>a link leads out of Waggle's folder</source><translation>ein Link führt aus Waggles Ordner heraus</translation></message>
<message><source>a message has an unknown role</source><translation>eine Nachricht hat eine unbekannte Rolle</translation></message>
<message><source>a message has no %1 that is a text</source><translation>eine Nachricht hat kein %1, das Text ist</translation></message>
<message><source>a part of its path is no folder</source><translation>ein Teil des Pfades ist kein Ordner</translation></message>
<message><source>a peer</source><translation>einem Peer</translation></message>
<message><source>a peer was right first</source><translation>ein Peer löste es zuerst</translation></message>
<message><source>a peer's example, coming in</source><translation>Beispiel eines Peers</translation></message>
<message><source>a question twice</source><translation>eine Frage doppelt</translation></message>
<message><source>a spreadsheet or an archive</source><translation>eine Tabelle oder ein Archiv</translation></message>
<message><source>a text can end its process</source><translation>ein Text kann seinen Prozess beenden</translation></message>
<message><source>a text of %1 characters can keep its scorer busy for more than %2 seconds</source><translation>ein Text von %1 Zeichen kann seinen Prüfer länger als %2 Sekunden beschäftigen</translation></message>
<message><source>about %1 h</source><translation>etwa %1 h</translation></message>
<message><source>about %1 min</source><translation>etwa %1 min</translation></message>
<message><source>after learning from another</source><translation>nach dem Lernen von anderen</translation></message>
<message><source>alone</source><translation>allein</translation></message>
<message><source>an Intel GPU was found</source><translation>eine Intel-GPU wurde gefunden</translation></message>
<message><source>an NVIDIA graphics card was found; CUDA, which computes on it, can be downloaded</source><translation>eine NVIDIA-Grafikkarte gefunden; CUDA, das auf ihr rechnet, lässt sich herunterladen</translation></message>
<message numerus="yes"><source>and %n more</source><translation><numerusform>und %n weitere</numerusform><numerusform>und %n weitere</numerusform></translation></message>
<message><source>announcement of the wrong size</source><translation>Ankündigung von falscher Größe</translation></message>
<message><source>another Waggle</source><translation>ein anderes Waggle</translation></message>
<message><source>another charter</source><translation>eine andere Charta</translation></message>
<message><source>another origin</source><translation>ein anderer Absender</translation></message>
<message><source>another program has the port now</source><translation>ein anderes Programm hat jetzt den Port</translation></message>
<message><source>another program listens there</source><translation>ein anderes Programm lauscht dort</translation></message>
<message><source>another program uses it</source><translation>ein anderes Programm benutzt es</translation></message>
<message><source>another protocol</source><translation>ein anderes Protokoll</translation></message>
<message><source>another swarm's announcement</source><translation>Ankündigung für einen anderen Schwarm</translation></message>
<message><source>answer sheet of the wrong size</source><translation>Antwortbogen von falscher Größe</translation></message>
<message><source>answering</source><translation>antwortet</translation></message>
<message><source>answers not verified</source><translation>Lösungen ungeprüft</translation></message>
<message><source>answers to other questions</source><translation>Antworten auf andere Fragen</translation></message>
<message><source>answers tried</source><translation>versuchte Antworten</translation></message>
<message><source>as a chat</source><translation>im Chat</translation></message>
<message><source>as a chat with a worked example</source><translation>im Chat mit einem gelösten Beispiel</translation></message>
<message><source>as a chat with a worked example and the answer tag opened</source><translation>im Chat mit einem gelösten Beispiel und begonnener Antwort</translation></message>
<message><source>as a trend</source><translation>als Trend</translation></message>
<message><source>as a trend, stopped after round %1</source><translation>als Trend, abgebrochen nach Runde %1</translation></message>
<message><source>as a trend; the result is from new questions</source><translation>als Trend; Ergebnis aus neuen Fragen</translation></message>
<message><source>as much as its readable answers need</source><translation>so viel, wie seine lesbaren Antworten brauchen</translation></message>
<message><source>as usual for this kind of model</source><translation>wie bei einem solchen Modell üblich</translation></message>
<message><source>as you chose</source><translation>wie von dir gewählt</translation></message>
<message><source>as you set it</source><translation>wie von dir gesetzt</translation></message>
<message><source>automatic: model, swarm, settings</source><translation>automatisch: Modell, Schwarm, Optionen</translation></message>
<message><source>blocked</source><translation>gesperrt</translation></message>
<message><source>broken text</source><translation>kaputter Text</translation></message>
<message><source>by %1</source><translation>von %1</translation></message>
<message><source>by your model</source><translation>von deinem Modell</translation></message>
<message><source>cannot be judged</source><translation>nicht zu bewerten</translation></message>
<message><source>cannot be written</source><translation>lässt sich nicht schreiben</translation></message>
<message><source>chosen in the settings</source><translation>in den Optionen gewählt</translation></message>
<message><source>close</source><translation>nah dran</translation></message>
<message><source>closing</source><translation>wird geschlossen</translation></message>
<message><source>completion too long</source><translation>zu lange Antwort</translation></message>
<message><source>compressed</source><translation>komprimiert</translation></message>
<message><source>could not be judged</source><translation>nicht zu bewerten</translation></message>
<message><source>cut off</source><translation>abgeschnitten</translation></message>
<message><source>damaged: %1</source><translation>beschädigt: %1</translation></message>
<message><source>dashed: a relay</source><translation>gestrichelt: Relais</translation></message>
<message><source>does not name one swarm</source><translation>nennt nicht genau einen Schwarm</translation></message>
<message><source>done</source><translation>erledigt</translation></message>
<message><source>easy</source><translation>leicht</translation></message>
<message><source>empty answer</source><translation>leere Antwort</translation></message>
<message numerus="yes"><source>examples</source><translation><numerusform>Beispiel</numerusform><numerusform>Beispiele</numerusform></translation></message>
<message numerus="yes"><source>examples fetched %n times</source><translation><numerusform>Beispiele einmal geholt</numerusform><numerusform>Beispiele %n-mal geholt</numerusform></translation></message>
<message><source>filled in after the next test</source><translation>nach dem nächsten Test gefüllt</translation></message>
<message><source>filled in after this test</source><translation>nach diesem Test gefüllt</translation></message>
<message><source>first right answer, by itself</source><translation>erste richtige Antwort, von selbst</translation></message>
<message><source>for another place or time</source><translation>für einen anderen Ort oder eine andere Zeit</translation></message>
<message><source>for example /home/anna/runs</source><translation>zum Beispiel /home/anna/runs</translation></message>
<message><source>for example Fractions, Logic</source><translation>zum Beispiel Fractions, Logic</translation></message>
<message><source>for example blender, steam</source><translation>zum Beispiel blender, steam</translation></message>
<message><source>forged announcement</source><translation>gefälschte Ankündigung</translation></message>
<message><source>forged answer sheet</source><translation>gefälschter Antwortbogen</translation></message>
<message><source>forged statement of presence</source><translation>gefälschte Anwesenheitserklärung</translation></message>
<message><source>found by itself</source><translation>selbst gefunden</translation></message>
<message><source>from the future</source><translation>aus der Zukunft</translation></message>
<message><source>gathering</source><translation>sammelt</translation></message>
<message><source>getting ready</source><translation>macht sich bereit</translation></message>
<message><source>graded as: %1</source><translation>bewertet als: %1</translation></message>
<message><source>greeting of the wrong size</source><translation>Begrüßung von falscher Größe</translation></message>
<message><source>hard</source><translation>schwer</translation></message>
<message><source>has more than %1 fields</source><translation>hat mehr als %1 Felder</translation></message>
<message><source>has no words</source><translation>hat keine Wörter</translation></message>
<message><source>highest first</source><translation>höchste zuerst</translation></message>
<message><source>hivemind is not installed</source><translation>hivemind ist nicht installiert</translation></message>
<message><source>holds a damaged key</source><translation>enthält einen beschädigten Schlüssel</translation></message>
<message><source>holds back</source><translation>hält zurück</translation></message>
<message><source>holds characters that no address has</source><translation>enthält Zeichen, die keine Adresse hat</translation></message>
<message><source>holds characters that no link has</source><translation>enthält Zeichen, die kein Link hat</translation></message>
<message><source>holds something that this version does not know</source><translation>enthält etwas, das diese Version nicht kennt</translation></message>
<message><source>how long a message to it and back takes</source><translation>wie lange eine Nachricht hin und zurück braucht</translation></message>
<message><source>how right its answers were, 0 to 1</source><translation>wie richtig seine Antworten waren, 0 bis 1</translation></message>
<message><source>human</source><translation>Mensch</translation></message>
<message numerus="yes"><source>in %n rounds</source><translation><numerusform>in %n Runde</numerusform><numerusform>in %n Runden</numerusform></translation></message>
<message><source>in the first order</source><translation>in der ersten Reihenfolge</translation></message>
<message><source>invalid hash of an answer sheet</source><translation>ungültiger Hash eines Antwortbogens</translation></message>
<message><source>invalid model name</source><translation>ungültiger Name des Modells</translation></message>
<message><source>is an empty list</source><translation>ist eine leere Liste</translation></message>
<message><source>is damaged</source><translation>ist beschädigt</translation></message>
<message><source>is left out</source><translation>ist ausgelassen</translation></message>
<message><source>is longer than %1 characters, too long for a choice</source><translation>ist länger als %1 Zeichen, zu lang für eine Auswahl</translation></message>
<message><source>is not a JSON object like {"name": "Ada", "born": 1815} with plain values</source><translation>ist kein JSON-Objekt wie {"name": "Ada", "born": 1815} mit einfachen Werten</translation></message>
<message><source>is not a number like 1234.5, 1,234.5 or 1.2e6</source><translation>ist keine Zahl wie 1234.5, 1,234.5 oder 1.2e6</translation></message>
<message><source>is too long</source><translation>ist zu lang</translation></message>
<message><source>it became shorter</source><translation>sie wurde kürzer</translation></message>
<message><source>it claims more fields or tensors than any model has</source><translation>sie behauptet mehr Felder oder Tensoren, als ein Modell hat</translation></message>
<message><source>it claims more layers than it has tensors</source><translation>sie behauptet mehr Schichten, als sie Tensoren hat</translation></message>
<message><source>it contains the byte 0</source><translation>sie enthält das Byte 0</translation></message>
<message><source>it does not have the %1 questions that the charter names</source><translation>sie hat nicht die %1 Fragen, die die Charta nennt</translation></message>
<message><source>it does not pay its own true answer in full</source><translation>es belohnt seine eigene richtige Antwort nicht voll</translation></message>
<message><source>it ended with code %1</source><translation>er endete mit Code %1</translation></message>
<message><source>it ended with signal %1</source><translation>er endete durch Signal %1</translation></message>
<message><source>it has %1 cells, and the first line %2</source><translation>sie hat %1 Zellen, die erste Zeile %2</translation></message>
<message><source>it has %1 columns, more than %2</source><translation>sie hat %1 Spalten, mehr als %2</translation></message>
<message><source>it has a damaged vocabulary</source><translation>ihr Vokabular ist beschädigt</translation></message>
<message><source>it has a header that is too large</source><translation>ihr Kopf ist zu groß</translation></message>
<message><source>it has a special token that is no token</source><translation>ein Sonderzeichen ist kein Token</translation></message>
<message><source>it has a tensor %1 of a shape that does not fit the others</source><translation>der Tensor %1 hat eine Form, die nicht zu den anderen passt</translation></message>
<message><source>it has a tensor %1, which transformers does not read</source><translation>der Tensor %1 wird von transformers nicht gelesen</translation></message>
<message><source>it has a tokenizer of type %1, which Waggle does not convert</source><translation>ihr Tokenizer ist vom Typ %1, den Waggle nicht umwandelt</translation></message>
<message><source>it has both a %1 and a %2</source><translation>sie hat sowohl %1 als auch %2</translation></message>
<message><source>it has damaged merges</source><translation>ihre Merges sind beschädigt</translation></message>
<message><source>it has no %1 of a tokenizer</source><translation>ihr fehlt das Feld %1 eines Tokenizers</translation></message>
<message><source>it has no tensor for %1</source><translation>ihr fehlt ein Tensor für %1</translation></message>
<message><source>it has no vocabulary</source><translation>sie hat kein Vokabular</translation></message>
<message><source>it has tensors of precision %1, which Waggle does not know</source><translation>sie hat Tensoren der Genauigkeit %1, die Waggle nicht kennt</translation></message>
<message><source>it has tensors that overlap</source><translation>ihre Tensoren überlappen sich</translation></message>
<message><source>it has the setting %1, which transformers would pass over</source><translation>sie hat die Einstellung %1, die transformers übergehen würde</translation></message>
<message><source>it holds a model of type %1, and Waggle converts %2</source><translation>sie enthält ein Modell vom Typ %1, und Waggle wandelt %2 um</translation></message>
<message><source>it is a folder, not a file</source><translation>es ist ein Ordner, keine Datei</translation></message>
<message><source>it is a link to %1, which is not there</source><translation>es ist ein Link auf %1, das nicht da ist</translation></message>
<message><source>it is a part of a model that is split into several files</source><translation>sie ist ein Teil eines Modells, das auf mehrere Dateien verteilt ist</translation></message>
<message><source>it is damaged, or no GGUF file</source><translation>sie ist beschädigt oder keine GGUF-Datei</translation></message>
<message><source>it is incomplete</source><translation>sie ist unvollständig</translation></message>
<message><source>it is longer than %1 MiB</source><translation>sie ist länger als %1 MiB</translation></message>
<message><source>it is not compressed as agreed</source><translation>sie ist nicht wie vereinbart komprimiert</translation></message>
<message><source>it is of version %1 of GGUF, and Waggle reads versions 2 and 3</source><translation>sie hat Version %1 von GGUF, und Waggle liest die Versionen 2 und 3</translation></message>
<message><source>it needs the grader %1</source><translation>sie braucht den Bewerter %1</translation></message>
<message><source>it pays in full what is no answer (%1)</source><translation>es belohnt voll, was keine Antwort ist (%1)</translation></message>
<message><source>it says more than %1 characters</source><translation>sie sagt mehr als %1 Zeichen</translation></message>
<message><source>it scales its positions in a way that Waggle does not know</source><translation>sie skaliert ihre Positionen auf eine Weise, die Waggle nicht kennt</translation></message>
<message><source>it splits texts in a way that Waggle does not know (%1)</source><translation>sie teilt Texte auf eine Weise, die Waggle nicht kennt (%1)</translation></message>
<message><source>it takes too much memory to read</source><translation>das Lesen braucht zu viel Speicher</translation></message>
<message><source>it talks nonsense: %1</source><translation>er redet Unsinn: %1</translation></message>
<message><source>it took more than %1 GiB</source><translation>es brauchte mehr als %1 GiB</translation></message>
<message><source>it would have to move to another disk</source><translation>es müsste auf eine andere Festplatte</translation></message>
<message><source>its disk cannot do that</source><translation>die Festplatte kann das nicht</translation></message>
<message><source>its disk is for reading only</source><translation>die Festplatte ist nur lesbar</translation></message>
<message><source>its disk is gone</source><translation>die Festplatte ist weg</translation></message>
<message><source>its examples that your model learned from, of all that arrived</source><translation>seine Beispiele, aus denen dein Modell lernte, von allen, die ankamen</translation></message>
<message><source>its head has %1 outputs</source><translation>sein Kopf hat %1 Ausgaben</translation></message>
<message><source>its links lead in a circle</source><translation>die Links führen im Kreis</translation></message>
<message><source>its name is too long</source><translation>der Name ist zu lang</translation></message>
<message><source>its questions are not the same in another process or on another day</source><translation>seine Fragen sind in einem anderen Prozess oder an einem anderen Tag nicht dieselben</translation></message>
<message><source>its questions are not the same when they are made again</source><translation>seine Fragen sind nicht dieselben, wenn sie noch einmal gemacht werden</translation></message>
<message><source>its questions cannot be made where answers are judged (%1)</source><translation>seine Fragen lassen sich nicht machen, wo Antworten bewertet werden (%1)</translation></message>
<message><source>its scorer does what nothing here may do (%1)</source><translation>sein Prüfer tut, was hier nichts tun darf (%1)</translation></message>
<message><source>its scorer imports modules while it judges</source><translation>sein Prüfer lädt beim Bewerten Module</translation></message>
<message><source>its scorer is quick only up to %1 characters, and this charter allows %2</source><translation>sein Prüfer ist nur bis %1 Zeichen schnell, und diese Charta erlaubt %2</translation></message>
<message><source>its scorer opens files while it judges</source><translation>sein Prüfer öffnet beim Bewerten Dateien</translation></message>
<message><source>its scorer runs text as code</source><translation>sein Prüfer führt Text als Programm aus</translation></message>
<message><source>its scores are not always numbers</source><translation>seine Bewertungen sind nicht immer Zahlen</translation></message>
<message><source>its scores are not the same in another process or on another day</source><translation>seine Bewertungen sind in einem anderen Prozess oder an einem anderen Tag nicht dieselben</translation></message>
<message><source>its scores are not the same when it is asked again</source><translation>seine Bewertungen sind nicht dieselben, wenn es noch einmal gefragt wird</translation></message>
<message><source>its scores leave the range from 0 to 1</source><translation>seine Bewertungen liegen nicht alle zwischen 0 und 1</translation></message>
<message><source>its size is not allowed</source><translation>ihre Größe ist nicht erlaubt</translation></message>
<message><source>judging</source><translation>bewertet</translation></message>
<message><source>learned from copy %1</source><translation>gelernt von Kopie %1</translation></message>
<message><source>learning</source><translation>lernt</translation></message>
<message><source>learning.local and learning.external cannot both be 0.</source><translation>learning.local und learning.external können nicht beide 0 sein.</translation></message>
<message><source>learning.local is %1, but only %2 questions are drawn.</source><translation>learning.local ist %1, aber nur %2 Fragen werden gezogen.</translation></message>
<message><source>learning.specialties may name %1.</source><translation>learning.specialties darf %1 nennen.</translation></message>
<message><source>less likely</source><translation>unwahrscheinlicher</translation></message>
<message><source>less than a minute</source><translation>weniger als eine Minute</translation></message>
<message><source>line %1 is malformed</source><translation>Zeile %1 ist fehlerhaft</translation></message>
<message><source>line %1 is out of order, or a question again</source><translation>Zeile %1 steht nicht in der Reihenfolge oder wiederholt eine Frage</translation></message>
<message><source>line %1: %2</source><translation>Zeile %1: %2</translation></message>
<message><source>lists</source><translation>Listen</translation></message>
<message><source>lowest first</source><translation>niedrigste zuerst</translation></message>
<message><source>making one of its questions takes %1 seconds</source><translation>eine seiner Fragen zu machen dauert %1 Sekunden</translation></message>
<message><source>malformed</source><translation>unlesbar</translation></message>
<message><source>malformed announcement</source><translation>unlesbare Ankündigung</translation></message>
<message><source>malformed answer sheet</source><translation>unlesbarer Antwortbogen</translation></message>
<message><source>malformed compression</source><translation>unlesbar gepackt</translation></message>
<message><source>malformed greeting</source><translation>unlesbare Begrüßung</translation></message>
<message><source>margin of error</source><translation>Fehlerspanne</translation></message>
<message><source>may be used</source><translation>darf genutzt werden</translation></message>
<message><source>met</source><translation>erfüllt</translation></message>
<message><source>mlx-lm does not know the activation %1 in models of type %2.</source><translation>mlx-lm kennt die Aktivierung %1 in Modellen der Art %2 nicht.</translation></message>
<message><source>mlx-lm does not know this order of layers.</source><translation>mlx-lm kennt diese Reihenfolge der Schichten nicht.</translation></message>
<message><source>mlx-lm passes over %1 in models of type %2.</source><translation>mlx-lm übergeht %1 in Modellen der Art %2.</translation></message>
<message><source>model.folder and model.name are both set.</source><translation>model.folder und model.name sind beide gesetzt.</translation></message>
<message><source>more likely next time</source><translation>nächstes Mal wahrscheinlicher</translation></message>
<message><source>names a gateway by something that is no address, one twice, or more than %1</source><translation>nennt ein Gateway ohne gültige Adresse, eines doppelt oder mehr als %1</translation></message>
<message><source>names a seed by something that is no address</source><translation>nennt einen Seed ohne gültige Adresse</translation></message>
<message><source>names no seed, one seed twice, or more than %1</source><translation>nennt keinen Seed, einen doppelt oder mehr als %1</translation></message>
<message><source>no answer</source><translation>keine Antwort</translation></message>
<message><source>no answer tag</source><translation>kein Antwort-Tag</translation></message>
<message><source>no answer within %1 s of work</source><translation>keine Antwort nach %1 s Arbeit</translation></message>
<message><source>no answer within %1 s, of which it worked for %2 s</source><translation>keine Antwort nach %1 s, davon %2 s Arbeit</translation></message>
<message><source>no column is named answer</source><translation>keine Spalte heißt answer</translation></message>
<message><source>no column is named question or prompt</source><translation>keine Spalte heißt question oder prompt</translation></message>
<message><source>no member of this private swarm</source><translation>kein Mitglied dieses privaten Schwarms</translation></message>
<message><source>no members seen yet</source><translation>noch keine Mitglieder gesehen</translation></message>
<message><source>no message is the user's</source><translation>keine Nachricht ist vom Benutzer</translation></message>
<message><source>no supported GPU was found, which is normal</source><translation>keine unterstützte Grafikkarte gefunden, was üblich ist</translation></message>
<message><source>no swarm</source><translation>kein Schwarm</translation></message>
<message><source>nobody here has that name</source><translation>niemand heißt hier so</translation></message>
<message><source>none</source><translation>keiner</translation></message>
<message><source>not downloaded yet</source><translation>noch nicht heruntergeladen</translation></message>
<message><source>not finished</source><translation>nicht fertig</translation></message>
<message><source>not finite</source><translation>nicht endlich</translation></message>
<message><source>not its key</source><translation>nicht sein Schlüssel</translation></message>
<message><source>not solved yet</source><translation>noch nicht gelöst</translation></message>
<message><source>not tested yet</source><translation>noch nicht getestet</translation></message>
<message><source>not the answer sheet that was named</source><translation>nicht der angekündigte Antwortbogen</translation></message>
<message><source>not the payload that was announced</source><translation>nicht die angekündigten Daten</translation></message>
<message><source>not the round that was announced</source><translation>nicht die angekündigte Runde</translation></message>
<message><source>not trained here yet</source><translation>noch nicht trainiert</translation></message>
<message><source>not verified</source><translation>ungeprüft</translation></message>
<message><source>nothing from peers</source><translation>nichts von Peers</translation></message>
<message><source>nothing yet</source><translation>noch nichts</translation></message>
<message><source>now</source><translation>jetzt</translation></message>
<message><source>numbers</source><translation>Zahlen</translation></message>
<message><source>of its answers in training</source><translation>von seinen Antworten im Training</translation></message>
<message><source>of them right</source><translation>davon richtig</translation></message>
<message><source>off by at most</source><translation>Toleranz</translation></message>
<message><source>on new questions</source><translation>bei neuen Fragen</translation></message>
<message><source>only %1 of its questions are not reserved, and %2 are needed</source><translation>nur %1 ihrer Fragen sind nicht reserviert, und %2 werden gebraucht</translation></message>
<message><source>own questions</source><translation>eigene Fragen</translation></message>
<message><source>pale: idle</source><translation>blass: untätig</translation></message>
<message numerus="yes"><source>peers</source><translation><numerusform>Peer</numerusform><numerusform>Peers</numerusform></translation></message>
<message numerus="yes"><source>peers took some</source><translation><numerusform>Peer holte welche</numerusform><numerusform>Peers holten welche</numerusform></translation></message>
<message><source>picking</source><translation>wählt aus</translation></message>
<message><source>picking questions</source><translation>wählt Fragen aus</translation></message>
<message><source>quantised</source><translation>quantisiert</translation></message>
<message><source>question beyond the charter's limit</source><translation>Frage jenseits der Grenze der Charta</translation></message>
<message><source>raised, because many answers were cut off</source><translation>erhöht, weil viele Antworten abgeschnitten wurden</translation></message>
<message><source>reasoning-gym has no file %1</source><translation>reasoning-gym hat keine Datei %1</translation></message>
<message><source>recently right</source><translation>zuletzt richtig</translation></message>
<message><source>reserved question</source><translation>Prüffrage</translation></message>
<message><source>right</source><translation>richtig</translation></message>
<message><source>right answer</source><translation>richtige Antwort</translation></message>
<message><source>right on new questions</source><translation>richtig bei neuen Fragen</translation></message>
<message><source>right when it stopped</source><translation>richtig beim Abbruch</translation></message>
<message><source>right, but no answer tag</source><translation>richtig, aber kein Antwort-Tag</translation></message>
<message><source>right, wrong format</source><translation>richtig, falsche Form</translation></message>
<message><source>round %1</source><translation>Runde %1</translation></message>
<message><source>round %1, %2</source><translation>Runde %1, %2</translation></message>
<message><source>round %1, %2 was right first</source><translation>Runde %1, %2 löste es zuerst</translation></message>
<message><source>round %1, found by itself</source><translation>Runde %1, selbst gefunden</translation></message>
<message><source>runs %1, which is newer: update this Waggle to train with it</source><translation>Bei ihm läuft %1, das neuer ist: Aktualisiere dieses Waggle, um mit ihm zu trainieren</translation></message>
<message><source>runs %1, which is older: it must be updated to train with this one</source><translation>Bei ihm läuft %1, das älter ist: Er muss aktualisiert werden, um mit diesem hier zu trainieren</translation></message>
<message><source>saved as UTF-16</source><translation>als UTF-16 gespeichert</translation></message>
<message><source>set by hand</source><translation>von Hand eingestellt</translation></message>
<message><source>several answers</source><translation>mehrere Antworten</translation></message>
<message><source>sharing</source><translation>teilt</translation></message>
<message><source>since %1</source><translation>seit %1</translation></message>
<message><source>some of them take minutes</source><translation>manche dauern Minuten</translation></message>
<message><source>ssh is missing on this computer.</source><translation>Auf diesem Computer fehlt ssh.</translation></message>
<message><source>standard</source><translation>üblich</translation></message>
<message><source>stopped by you</source><translation>von dir gestoppt</translation></message>
<message><source>stopped here</source><translation>hier angehalten</translation></message>
<message><source>stronger colour: more right; blue edge: learned from peers</source><translation>kräftigere Farbe: mehr richtig; blauer Rand: von Peers gelernt</translation></message>
<message><source>swarm.charter in the settings, or on the command line, names the swarm.</source><translation>swarm.charter in den Optionen oder auf der Befehlszeile nennt den Schwarm.</translation></message>
<message><source>takes too long to judge</source><translation>Bewerten dauert zu lange</translation></message>
<message><source>taking a test</source><translation>macht einen Test</translation></message>
<message><source>the Intel GPU cannot be used: %1</source><translation>die Intel-GPU ist nicht nutzbar: %1</translation></message>
<message><source>the access list cannot be read</source><translation>die Zugriffsliste ist nicht lesbar</translation></message>
<message><source>the answer</source><translation>die Antwort</translation></message>
<message><source>the answer "%1" %2</source><translation>die Antwort "%1" %2</translation></message>
<message><source>the answer contains %1 or %2, between which a model writes its own</source><translation>die Antwort enthält %1 oder %2, wozwischen ein Modell seine eigene schreibt</translation></message>
<message><source>the answer has lists or objects within</source><translation>die Antwort enthält Listen oder Objekte</translation></message>
<message><source>the answer is not a text, a number, a list or an object</source><translation>die Antwort ist weder Text noch Zahl, Liste oder Objekt</translation></message>
<message><source>the client has gone</source><translation>der Client ist weg</translation></message>
<message><source>the connection failed</source><translation>die Verbindung kam nicht zustande</translation></message>
<message><source>the disk is full</source><translation>die Festplatte ist voll</translation></message>
<message><source>the disk reports an error</source><translation>die Festplatte meldet einen Fehler</translation></message>
<message><source>the file is too large for its disk</source><translation>die Datei ist zu groß für die Festplatte</translation></message>
<message><source>the gateway is full</source><translation>das Gateway ist voll</translation></message>
<message><source>the header of %1 is too large</source><translation>der Kopf von %1 ist zu groß</translation></message>
<message><source>the lower, the better it fits what it learns from; may be below 0</source><translation>je niedriger, desto besser passt es zum Gelernten; auch unter 0</translation></message>
<message><source>the messages are not JSON</source><translation>die Nachrichten sind kein JSON</translation></message>
<message><source>the newest %1 of %2</source><translation>neueste %1 von %2</translation></message>
<message><source>the note of port and secret is damaged</source><translation>die Notiz von Port und Geheimnis ist beschädigt</translation></message>
<message><source>the picture could not be written</source><translation>das Bild ließ sich nicht schreiben</translation></message>
<message><source>the question</source><translation>die Frage</translation></message>
<message><source>the question is not a text</source><translation>die Frage ist kein Text</translation></message>
<message><source>the question of line %1 has another answer here</source><translation>die Frage von Zeile %1 hat hier eine andere Antwort</translation></message>
<message><source>the samples in the charter are no questions of it</source><translation>die Beispiele in der Charta sind keine Fragen daraus</translation></message>
<message><source>the swarm</source><translation>dem Schwarm</translation></message>
<message><source>the system allows no more processes or memory now</source><translation>das System erlaubt gerade nicht mehr Prozesse oder Speicher</translation></message>
<message><source>the user of this process has no identifier</source><translation>der Benutzer dieses Prozesses hat keine Kennung</translation></message>
<message><source>the user of this process is unknown</source><translation>der Benutzer dieses Prozesses ist unbekannt</translation></message>
<message><source>there are more than %1 questions</source><translation>es sind mehr als %1 Fragen</translation></message>
<message><source>there is no %1; there are all, %2</source><translation>%1 gibt es nicht; es gibt all, %2</translation></message>
<message><source>there is no answer</source><translation>es fehlt die Antwort</translation></message>
<message><source>there is no question</source><translation>es fehlt die Frage</translation></message>
<message><source>there is no such file or folder</source><translation>es gibt diese Datei oder diesen Ordner nicht</translation></message>
<message><source>there is something already</source><translation>dort ist schon etwas</translation></message>
<message><source>there is too little memory</source><translation>der Speicher reicht nicht</translation></message>
<message><source>they need %1 opened</source><translation>sie müssten %1 öffnen</translation></message>
<message><source>thick blue ring: a peer was right first</source><translation>dicker blauer Rand: Peer löste es zuerst</translation></message>
<message><source>this Mac's graphics processor was found</source><translation>der Grafikprozessor dieses Macs wurde gefunden</translation></message>
<message><source>this Waggle has no such dataset</source><translation>dieses Waggle kennt es nicht</translation></message>
<message><source>this cannot be used: %1</source><translation>das ist nicht brauchbar: %1</translation></message>
<message><source>this computer has no such address</source><translation>dieser Computer hat diese Adresse nicht</translation></message>
<message><source>this is not JSON: %1</source><translation>das ist kein JSON: %1</translation></message>
<message><source>this is not a JSON object</source><translation>das ist kein JSON-Objekt</translation></message>
<message><source>this is not a row of CSV: %1</source><translation>das ist keine Zeile in CSV: %1</translation></message>
<message><source>this is not text in UTF-8</source><translation>das ist kein Text in UTF-8</translation></message>
<message><source>this round</source><translation>diese Runde</translation></message>
<message><source>this swarm</source><translation>dieser Schwarm</translation></message>
<message><source>this user has no home folder</source><translation>dieser Benutzer hat keinen Heimordner</translation></message>
<message><source>this user may not do that there</source><translation>dieser Benutzer darf das dort nicht</translation></message>
<message><source>to %1</source><translation>an %1</translation></message>
<message><source>to come</source><translation>kommt noch</translation></message>
<message><source>to whoever asks</source><translation>an alle, die fragen</translation></message>
<message><source>too large</source><translation>zu groß</translation></message>
<message><source>too large unpacked</source><translation>entpackt zu groß</translation></message>
<message><source>too many clients of one address range</source><translation>zu viele Clients aus einem Adressbereich</translation></message>
<message><source>too many files are open</source><translation>zu viele Dateien sind offen</translation></message>
<message><source>too many files like %1</source><translation>zu viele Dateien wie %1</translation></message>
<message><source>too many or too few completions</source><translation>zu viele oder zu wenige Antworten</translation></message>
<message><source>too old</source><translation>zu alt</translation></message>
<message><source>torch cannot use the device %1: %2.</source><translation>torch kann das Gerät %1 nicht benutzen: %2.</translation></message>
<message><source>torch finds no device %1 here.</source><translation>torch findet hier kein Gerät %1.</translation></message>
<message><source>trains a small language model in %1</source><translation>trainiert ein kleines Sprachmodell in %1</translation></message>
<message><source>trains under another charter (%1): one of the two must join by the other's invite</source><translation>Er trainiert unter einer anderen Charta (%1): Einer von beiden muss mit der Einladung des anderen beitreten</translation></message>
<message><source>transformers cannot read it (%1)</source><translation>transformers kann sie nicht lesen (%1)</translation></message>
<message><source>two columns have the same name</source><translation>zwei Spalten heißen gleich</translation></message>
<message><source>under way</source><translation>läuft</translation></message>
<message><source>unknown specialty</source><translation>unbekanntes Fachgebiet</translation></message>
<message><source>unnamed</source><translation>unbenannt</translation></message>
<message><source>until_round is %1.</source><translation>until_round ist %1.</translation></message>
<message><source>waggle://join?…</source><translation>waggle://join?…</translation></message>
<message><source>weights in %1</source><translation>Gewichte in %1</translation></message>
<message><source>when.week has %1 days.</source><translation>when.week hat %1 Tage.</translation></message>
<message><source>with %1 peers</source><translation>mit %1 Peers</translation></message>
<message><source>with a worked example</source><translation>mit einem gelösten Beispiel</translation></message>
<message><source>with a worked example and the answer tag opened</source><translation>mit einem gelösten Beispiel und begonnener Antwort</translation></message>
<message><source>with peers</source><translation>mit Peers</translation></message>
<message><source>with the question alone</source><translation>mit der Frage allein</translation></message>
<message><source>writing</source><translation>schreibt</translation></message>
<message><source>written</source><translation>geschrieben</translation></message>
<message><source>wrong</source><translation>falsch</translation></message>
<message><source>wrong: %1</source><translation>falsch: %1</translation></message>
<message numerus="yes"><source>you in the middle, %n peers around you</source><translation><numerusform>du in der Mitte, %n Peer um dich</numerusform><numerusform>du in der Mitte, %n Peers um dich</numerusform></translation></message>
<message><source>your example, going out</source><translation>dein Beispiel</translation></message>
<message><source>your examples that it fetched</source><translation>deine Beispiele, die er abgeholt hat</translation></message>
<message><source>your guess</source><translation>dein Tipp</translation></message>
<message><source>your share of the disk is used up</source><translation>dein Anteil der Festplatte ist aufgebraucht</translation></message>
</context>
</TS>
