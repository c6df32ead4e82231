"""Two other months: other people, other matters, said in another way. Lines as in `atelier`."""

PEOPLE = ("dana", "Yusuf", "Mirko K.")
CHANNELS = ("ops", "lunch")

# ruff: noqa: E501
TALK = """
2025-09-01 08:58 ops Yusuf: morning folks, first standup after the holidays :)
2025-09-01 08:59 ops dana: hey hey. inbox: 412 unread, wish me luck
2025-09-01 09:01 ops Mirko K. [golive1]: so the big one first: go-live of the ticket portal is on October 6.
2025-09-01 09:03 ops dana: that's five weeks. tight but doable
2025-09-01 09:06 ops Yusuf [rabbit]: ok and for the message queue we're going with RabbitMQ, right?
2025-09-01 09:08 ops Mirko K. [queue1]: yep, let's go with RabbitMQ for the queue.
2025-09-01 09:15 ops Yusuf [certs]: cool. I'll rotate the certificates on Thursday so nobody gets paged
2025-09-01 09:22 ops dana: you're a star

2025-09-01 12:31 lunch dana: pizza or the noodle bar?
2025-09-01 12:33 lunch Mirko K. [coriander]: noodles! but I can't stand coriander, tell them to leave it out
2025-09-01 12:34 lunch Yusuf [vegan]: fine with both, just remember I'm vegan
2025-09-01 12:36 lunch dana: they've got a tofu thing, you're safe
2025-09-01 12:41 lunch Mirko K.: leaving in ten

2025-09-03 16:05 ops dana [gdansk]: fyi my hours are odd this month, I'm based in Gdansk and the kindergarten there is still shut
2025-09-03 16:09 ops Mirko K.: no problem, just block your calendar
2025-09-03 16:10 ops Yusuf: same here next week, the twins start school
2025-09-03 16:18 ops dana [mail1]: also for the vendor invites: my email is dana@harborlight.example
2025-09-03 16:40 ops Mirko K.: added you to both

2025-09-05 13:00 lunch Yusuf: anyone up for five-a-side on Tuesdays?
2025-09-05 13:02 lunch Mirko K. [goalie]: only if I can be goalkeeper, my knee is made of glass

2025-09-08 10:00 ops Mirko K.: load test results are in
2025-09-08 10:02 ops Mirko K. [load]: the portal survives 1300 requests per second, then the database gives up
2025-09-08 10:07 ops Yusuf: which query?
2025-09-08 10:11 ops Mirko K.: the full text one of course
2025-09-08 10:41 ops dana: I can look, I wrote that monster
2025-09-08 10:44 ops dana [index]: I'll add the missing index before Wednesday
2025-09-08 10:52 ops Mirko K.: thx

2025-09-10 15:20 ops Yusuf [dashboard]: does anybody know who owns the billing dashboard? it's been red since Monday
2025-09-10 15:24 ops Mirko K.: index is live, by the way: 2100 requests per second now
2025-09-10 15:27 ops dana: told you it was a monster
2025-09-10 15:33 ops Mirko K.: a tamed one

2025-09-12 12:05 lunch dana: Mirko, congrats on the half marathon!!
2025-09-12 12:06 lunch Mirko K. [run]: thanks, 1:52 and still able to climb stairs. well, slowly
2025-09-12 12:09 lunch Yusuf: the goalkeeper with the glass knee runs 21 km, sure
2025-09-12 12:15 lunch Mirko K.: running straight ahead is fine, it's turning around that hurts
2025-09-12 12:30 lunch dana: put that on a mug

2025-09-16 09:30 ops Yusuf: where do we do the team offsite this year?
2025-09-16 09:34 ops dana: somewhere with trains please
2025-09-16 09:41 ops Mirko K.: Krakow or Wroclaw, both have direct ones
2025-09-16 09:55 ops Yusuf: Krakow has the better museums
2025-09-16 10:20 ops Mirko K. [krakow]: alright, the offsite is in Krakow then.
2025-09-16 10:23 ops dana [hotel]: I'll ask two hotels for a quote

2025-09-18 18:30 ops Mirko K.: disk on staging is at 97 percent
2025-09-18 18:34 ops Mirko K.: cleaned the old builds, 61 percent
2025-09-18 18:52 ops Yusuf: what ate it?
2025-09-18 19:40 ops Mirko K.: debug logs from the importer
2025-09-18 19:44 ops Mirko K.: switched those off
2025-09-18 19:12 ops dana [tunnel]: (posted from the tunnel, will arrive whenever) was it the importer again

2025-09-23 13:10 lunch dana: big news: we found a house
2025-09-23 13:11 lunch Yusuf: WHERE
2025-09-23 13:12 lunch dana: Leeds. long story, my wife's new hospital is there
2025-09-23 13:15 lunch Mirko K. [wish]: lucky you, I'd move to Leeds just for the curry
2025-09-23 13:19 lunch dana: still staying with this team though, remote as ever
2025-09-23 13:31 lunch Yusuf: phew

2025-09-25 11:00 ops dana: hotel quotes: Krakow wants 3900 for the six of us, breakfast in
2025-09-25 11:06 ops Yusuf: ouch
2025-09-25 11:09 ops dana: same chain in Wroclaw: 2700
2025-09-25 11:20 ops Mirko K. [wroclaw]: scratch Krakow, the offsite is in Wroclaw.
2025-09-25 11:22 ops dana: booking it
2025-09-25 11:22 ops Yusuf: booked the train seats

2025-09-29 09:00 ops Yusuf: pen test report landed. two highs
2025-09-29 09:04 ops Mirko K.: let me guess, the upload form
2025-09-29 09:05 ops Yusuf: upload form and the password reset
2025-09-29 09:15 ops Mirko K.: then October 6 won't happen
2025-09-29 09:21 ops dana: agreed, security first
2025-09-29 09:26 ops Mirko K. [golive2]: new plan: go-live of the ticket portal is on October 20.
2025-09-29 09:28 ops Yusuf [fix]: I'll fix the upload form this week

2025-10-02 12:40 lunch Mirko K.: who stole my mug with the marathon quote
2025-10-02 12:42 lunch Yusuf [mug]: it is in the dishwasher, third floor
2025-10-02 12:44 lunch Mirko K.: justice
2025-10-02 12:50 lunch dana: I miss office crime

2025-10-06 10:10 ops Mirko K.: RabbitMQ fell over twice this weekend
2025-10-06 10:12 ops Yusuf: memory alarm?
2025-10-06 10:13 ops Mirko K.: yes, the backlog grows when the importer runs
2025-10-06 10:25 ops dana: NATS handled that in my last job without blinking
2025-10-06 10:40 ops Yusuf: migration is maybe two days
2025-10-06 10:52 ops Mirko K. [queue2]: ok scratch that, let's go with NATS for the queue.
2025-10-06 10:55 ops Yusuf: on it

2025-10-09 17:02 lunch dana [leeds]: greetings from chaos! I've moved to Leeds, everything is in boxes
2025-10-09 17:05 lunch Yusuf: welcome to the rain
2025-10-09 17:06 lunch dana: it's sunny, I swear
2025-10-09 17:11 lunch Mirko K.: send proof

2025-10-13 09:10 ops dana [mail2]: old mailbox dies tonight: my email is dana.k@northquay.example now
2025-10-13 09:14 ops Mirko K.: updated the vendor list
2025-10-13 09:20 ops Yusuf [quota]: heads up, the backup quota is 800 GB
2025-10-13 09:31 ops Mirko K.: that's enough until spring
2025-10-13 09:33 ops Yusuf [pw]: temp root password for the box is tangerine-42, change it asap
2025-10-13 09:36 ops Yusuf: oops, that was meant for the vault
edit quota: heads up, the backup quota is 650 GB
delete pw

2025-10-15 14:00 ops Mirko K. [ask]: @helper how many requests per second did the portal survive in the first load test?
2025-10-15 14:00:03 ops bot [reply]: 1300 requests per second, before the index was added.
2025-10-15 14:02 ops Mirko K.: good bot
2025-10-15 14:09 ops dana: we should give it a raise

2025-10-20 08:00 ops Yusuf: deploying
2025-10-20 08:19 ops Yusuf: green everywhere
2025-10-20 08:20 ops dana: champagne!!
2025-10-20 08:31 ops Mirko K.: first real ticket: "printer on fire". it begins
2025-10-20 08:40 ops Yusuf [watch]: I'll watch the error rate until noon

2025-10-24 12:12 lunch Yusuf [tuesday]: five-a-side is on Wednesdays from now on, the hall changed
2025-10-24 12:20 lunch Mirko K.: works for the knee
2025-10-24 12:29 lunch Yusuf: bring the gloves, goalie
2025-10-24 12:33 lunch dana: I'll cheer remotely

2025-10-31 16:00 ops Mirko K.: offsite retro: trains good, hotel ok, food excellent
2025-10-31 16:03 ops dana: the pierogi place!
2025-10-31 16:06 ops Yusuf: vegan pierogi exist, who knew
2025-10-31 16:10 ops Mirko K. [plan]: I'll write the plan for November over the weekend
"""
