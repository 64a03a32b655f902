/** A batch as this format stores it: a changed dictionary or frame makes it unreadable. */
export const STORED_BATCH =
  'AQUAAABUBAAAAKjadpsBAAAAAAAAGDaaB3i72QQIZZ1asQ6CQAz9FcMMsfWCrs4OMuhkw8YlJhCcHPh703IamvYiYbmQo/Du2tfmHYXqkpIGAy' +
  'hmoYZR2pJ8GbqOn+zjVPHJbV6wq+BS88ANBVaAd/AVHGgFB1bBcRg8TF7mNsyAf2XjKQPKDtkGejxo0GBBsU6ofZzkreL3dXCYukTpq0IxvnaX' +
  'W3PlgFkKk3C4XI7jexhkaBW1KSeLs3p5zY1n+t1DAX6ThEyW2LxxZswGOKnIkeQAZy9ajnxnhq21ZWJkbXm/ewmmY4IP7Yc5q8ml1C/bt09rOF' +
  'UhyJYIp2p4Uwvnt+0Ht0VJIg=='
