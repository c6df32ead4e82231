"""Two months of three people in two channels. One line is one message, in the order in which they arrive:
`date time channel speaker [label]: text`; `edit LABEL: text` and `delete LABEL` happen where they stand."""

PEOPLE = ("Ana", "Ben", "Chloe")
CHANNELS = ("studio", "friends")

# ruff: noqa: E501
TALK = """
2026-03-02 09:02 studio Ana: Morning! The gallery on Rue Mercier said yes, we can have the big room in May.
2026-03-02 09:03 studio Ben: Fantastic news. How much do they want for it?
2026-03-02 09:05 studio Ana: 900 euros for the week, and they keep ten percent of what we sell.
2026-03-02 09:08 studio Chloe [budget]: The budget is 4200 euros in total, so that leaves enough for printing and food.
2026-03-02 09:11 studio Ben: Do we already know a date?
2026-03-02 09:15 studio Ana [opening1]: We decided to open the exhibition on May 8.
2026-03-02 09:16 studio Chloe: Great, I put it in the calendar.
2026-03-02 09:24 studio Ben [van]: I will book the van for the paintings by Friday.
2026-03-02 09:31 studio Ana: Perfect, thank you both.

2026-03-02 19:40 friends Chloe: Is anybody up for dinner on Thursday?
2026-03-02 19:44 friends Ana [lyon]: Yes please. I live in Lyon, so anything near the Croix-Rousse is fine.
2026-03-02 19:47 friends Ben [otto]: I'm in, but I have to bring my dog. My dog is called Otto.
2026-03-02 19:52 friends Ana [peanuts]: By the way, I am allergic to peanuts, please keep that in mind when you choose a place.
2026-03-02 19:58 friends Chloe: Noted, no peanuts. There is a small Georgian place with a terrace.
2026-03-02 20:03 friends Ben: Dogs allowed?
2026-03-02 20:18 friends Chloe: They are, I called them.

2026-03-04 14:00 studio Ben: The van is booked, it has room for twenty frames.
2026-03-04 14:02 studio Chloe: You are a treasure.
2026-03-04 14:05 studio Ana: Thanks Ben!

2026-03-05 17:10 friends Chloe [phone1]: In case you get lost tonight: my number is 555-0142.
2026-03-05 17:12 friends Ben: Saved. Which street was it again?
2026-03-05 17:12 studio Ana: Before we close for today: the invitations need a text.
2026-03-05 17:14 friends Chloe: Rue des Capucins, the blue door next to the bakery.
2026-03-05 17:16 studio Ben: Short, please. Title, place, date, nothing else.
2026-03-05 17:20 friends Ana: I will be ten minutes late, the tram is stuck.
2026-03-05 17:21 studio Ana [invite]: The title is Quiet Water, I will write the invitation text on Sunday.
2026-03-05 17:22 friends Ben [tea]: No stress. I prefer tea, so order me a pot with mint if you get there first.
2026-03-05 17:29 studio Ben: Quiet Water it is.
2026-03-05 17:35 friends Chloe: Will do, see you there.

2026-03-06 10:00 studio Chloe: I got two quotes for the catalogue: one from a printer in Turin and one from Nantes.
2026-03-06 10:01 studio Ben: What is the difference?
2026-03-06 10:03 studio Chloe [quotes]: Turin wants 640 euros for 300 copies, Nantes 810, but Nantes delivers in four days.
2026-03-06 10:33 studio Ana [turin]: We decided to print the catalogue in Turin, we have time.
2026-03-06 10:34 studio Ben: Agreed.

2026-03-10 12:15 friends Ben: The weather looks great for Saturday. Shall we walk up Mont Verdun?
2026-03-10 12:19 friends Ana: Yes! How long is it?
2026-03-10 12:21 friends Ben: About 14 kilometres, five hours with the lunch break.
2026-03-10 12:26 friends Chloe: My knees are not what they were. Is there a shorter way?
2026-03-10 12:31 friends Ben [hike]: We can start at Poleymieux, then it is only nine kilometres.
2026-03-10 12:38 friends Chloe: Deal. I will bring the sandwiches.
2026-03-10 12:49 friends Ana: And I bring the thermos.

2026-03-11 09:30 studio Ana: We need somebody for the food at the opening.
2026-03-11 09:33 studio Chloe [caterer]: Try the caterer Maison Delorme, they did my sister's wedding. You reach them at 04 72 55 01 90.
2026-03-11 09:41 studio Ben: What do they cost?
2026-03-11 09:44 studio Chloe: About 18 euros a head.
2026-03-11 09:52 studio Ana: For sixty people that is 1080 euros. It fits.
2026-03-11 09:58 studio Ana [call]: I will call Maison Delorme tomorrow and ask for a menu without nuts.
2026-03-11 10:10 studio Ben [key]: Who has the key to the storage room? I could not get in last night.

2026-03-12 16:20 studio Ben [same1]: Delorme called back!
2026-03-12 16:20 studio Chloe [same2]: Delorme just called me as well, they have time for us.
2026-03-12 16:22 studio Ana: Ha, at the same moment.

2026-03-14 20:05 friends Chloe: My legs! But what a view.
2026-03-14 20:07 friends Ana: Otto slept in the car the whole way back.
2026-03-14 20:09 friends Ben: He is snoring on the sofa now.
2026-03-14 20:15 friends Chloe: Has anybody seen my green scarf? I think I lost it near the chapel.
2026-03-14 20:21 friends Ben [scarf]: The scarf is in my backpack, I picked it up at the spring.
2026-03-14 20:31 friends Chloe: You saved my week.

2026-03-17 14:00 studio Ana: Poster time. I have a red version and a blue version.
2026-03-17 14:06 studio Ben: The red one shouts a bit.
2026-03-17 14:12 studio Chloe: The blue one is calm, it would not fight with the paintings.
2026-03-17 14:20 studio Ben: Could we see both on the wall?
2026-03-17 15:05 studio Ana: Printed both, they hang in the hallway now.
2026-03-17 15:11 studio Chloe: Blue, definitely.
2026-03-17 15:20 studio Ana [blue]: We decided to use the blue poster.

2026-03-18 08:30 studio Ben: I measured the hallway of the gallery, it is eleven metres long.
2026-03-17 14:43 studio Chloe [late]: I sit in a train with a bad connection, my votes may arrive late.
2026-03-18 08:35 studio Ana: Eleven metres is enough for nine large paintings.
2026-03-18 08:41 studio Ben: Eight, if we want to leave room for the door.
2026-03-18 08:47 studio Chloe: Eight then, and the small ones go into the back room.
2026-03-18 08:55 studio Ana: Good, I draw a plan.

2026-03-19 18:30 friends Ana: Small confession: I have an interview in Porto next week.
2026-03-19 18:32 friends Ben: Porto? As in Portugal?
2026-03-19 18:34 friends Ana: As in Portugal. It is the print workshop of the Soares museum.
2026-03-19 18:40 friends Chloe [dream]: I would love to live in Porto one day.
2026-03-19 18:47 friends Ana: Nothing is signed. But I wanted you to hear it from me.
2026-03-19 18:52 friends Ben: Fingers crossed, and bring us some custard tarts.

2026-03-25 11:00 studio Chloe: The insurance wants a list of the paintings with values.
2026-03-25 11:04 studio Ana [paintings]: I have one from last year, 22 paintings, 31000 euros altogether.
2026-03-25 11:09 studio Chloe: The premium is 145 euros then.
2026-03-25 11:15 studio Ben: Worth it. Last year a frame broke in the rain.
2026-03-25 11:20 studio Chloe [insure]: I will send the list to the insurance on Monday.
2026-03-25 11:26 studio Ana: Good.

2026-03-26 08:12 friends Ben [coffee]: New doctor, new rules. I prefer coffee now, tea gives me headaches.
2026-03-26 08:15 friends Chloe: The world is upside down.
2026-03-26 08:19 friends Ana [job]: And I got the job! I start in Porto in April.
2026-03-26 08:22 friends Ben: Congratulations!!! We must celebrate.
2026-03-26 08:30 friends Chloe: So proud of you. When do you move?
2026-03-26 08:40 friends Ana: On the fourth of April, if the landlord is nice.

2026-03-30 09:10 studio Ana: Bad news from the gallery: the heating is being replaced in the first week of May.
2026-03-30 09:13 studio Ben: So no opening on the eighth?
2026-03-30 09:17 studio Ana: No, they offer us the week after.
2026-03-30 09:22 studio Chloe: That is fine for me, my parents come on the fourteenth.
2026-03-30 09:30 studio Ana [opening2]: We decided to open the exhibition on May 15.
2026-03-30 09:36 studio Ben: I will tell the van rental company today.
2026-03-30 09:48 studio Chloe: And I will write to everybody who is invited.

2026-04-02 13:00 studio Chloe: The printer in Turin is on strike, nobody knows for how long.
2026-04-02 13:05 studio Ana: Will they be done before the opening?
2026-04-02 13:10 studio Chloe: They say three weeks at least.
2026-04-02 13:18 studio Ben: The other printer would still take us.
2026-04-02 13:25 studio Ana [nantes]: We decided to print the catalogue in Nantes.
2026-04-02 13:29 studio Chloe: I will order 300 copies there this afternoon.

2026-04-03 21:00 friends Ben: Who still has boxes for Ana?
2026-04-03 21:04 friends Chloe: I have six big ones and tape.
2026-04-03 21:08 friends Ana: You are angels. The lorry comes at seven.
2026-04-03 21:15 friends Ben: Seven in the morning?! I take it back.
2026-04-03 21:20 friends Chloe: Otto is stronger than you.

2026-04-06 19:02 friends Ana [porto]: It is done, I live in Porto now. The flat smells of paint.
2026-04-06 19:06 friends Chloe: Pictures please!
2026-04-06 19:11 friends Ben: Is there a guest bed?
2026-04-06 19:20 friends Ana: A sofa that is nearly one. You are welcome any time.
2026-04-06 19:30 friends Chloe: Booking trains as we speak.

2026-04-08 10:00 studio Ben: I went through the prices for the list.
2026-04-08 10:04 studio Ben [frames]: The frames cost 75 euros each.
2026-04-08 10:09 studio Chloe: How many do we need?
2026-04-08 10:12 studio Ben: Eight new ones.
2026-04-08 10:18 studio Ana: I will sign the order tonight.
2026-04-08 10:25 studio Chloe [code]: The door code of the workshop is 8841 at night.
2026-04-08 10:31 studio Chloe: Forget that last message, wrong channel.
edit frames: The frames cost 57 euros each.
delete code

2026-04-10 18:05 friends Ben: I watched the film about the lighthouse yesterday.
2026-04-10 18:09 friends Chloe: And? No spoilers.
2026-04-10 18:12 friends Ben: The fog is the best actor in it.
2026-04-10 18:20 friends Ana: The cinema here has it with subtitles on Sunday.

2026-04-14 12:40 friends Chloe [phone2]: My phone fell into the river. My number is 555-0187 from today.
2026-04-14 12:42 friends Ben: Which river??
2026-04-14 12:45 friends Chloe: The Saone, from the pedalo.
2026-04-14 12:50 friends Ana: I have so many questions about the pedalo.
2026-04-14 13:05 friends Chloe: It was a team building day. Do not ask.

2026-04-15 09:00 studio Ben [ask]: @bot what is the phone number of the caterer?
2026-04-15 09:00:05 studio bot [reply]: The caterer is Maison Delorme, you reach them at 04 72 55 01 90.
2026-04-15 09:04 studio Ben: Thank you, machine.
2026-04-15 09:10 studio Ana: I confirmed sixty people with them, vegetarian and without nuts.
2026-04-15 09:18 studio Chloe [wine]: The wine comes from my uncle, forty bottles.
2026-04-15 09:40 studio Ben: Now I am looking forward to it.

2026-04-18 11:00 friends Chloe: At the market. They have the first strawberries.
2026-04-18 11:02 friends Ben: Buy two boxes, I pay you back.
2026-04-18 11:09 friends Chloe: The man with the honey says hello.
2026-04-18 11:12 friends Ana: I miss that market more than I thought.
2026-04-18 11:20 friends Chloe: I will bring you a jar.

2026-04-21 17:00 studio Chloe: The blue ink does not dry on the paper they have in Nantes.
2026-04-21 17:05 studio Ana: Can they take the other paper?
2026-04-21 17:09 studio Chloe: Not before the end of May.
2026-04-21 17:16 studio Ana [red]: We decided to use the red poster.
2026-04-21 17:25 studio Ben: I told you red grows on people.

2026-04-23 20:00 friends Chloe: We arrive in Porto on the first of May, at 16:40.
2026-04-23 20:02 friends Ana [station]: I pick you up at Sao Bento station.
2026-04-23 20:05 friends Ben: What shall we bring?
2026-04-23 20:07 friends Ana: Cheese. Only cheese.
2026-04-23 20:12 friends Chloe [meat]: Plan something green for me, I don't eat meat any more.
2026-04-23 20:20 friends Ana: Noted, I know the perfect place in Cedofeita.

2026-04-28 09:00 studio Ben: Last checks. Catalogue?
2026-04-28 09:03 studio Chloe: 300 copies arrived from Nantes this morning.
2026-04-28 09:08 studio Ana: Posters?
2026-04-28 09:12 studio Chloe: Red and dry.
2026-04-28 09:20 studio Ben: Van on the fourteenth at nine, then.
2026-04-28 09:28 studio Ana [speech]: I will write the speech for the opening this weekend.
2026-04-28 09:35 studio Chloe: Two minutes, please, not twenty.

2026-04-30 22:10 friends Ben: Bags packed. Otto stays with my mother.
2026-04-30 22:11 friends Chloe: Cheese packed.
2026-04-30 22:12 friends Ana: Sofa made.
2026-04-30 22:14 friends Ben: See you tomorrow!
"""
