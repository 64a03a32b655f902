/** A batch as the first format stored it: it must be readable for ever. */
export const STORED_BATCH =
  'AQUAAADHAQAAAKjadpsBAAAAAAAAAHi72Tn+c2NmpiwcmBlZfH19g4ODGeRsGd7fY2TGFhbMoLBgbHiydiovAwMjM44MxIwlAzHj' +
  'zkDM0OBgJicDMcjboWchBkZmbJmIgZ0flFyYUQMBFkjgwjU7tVLXELXpmJGZlw6JM1AqaES0P0ESiNhnZ+CoVspOrcTtbDZQYxKS' +
  'wxlrGcEphDEbkvryFbyC/f0YQFU2IwCtZHJk'
