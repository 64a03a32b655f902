/** A batch of the first format, which must be readable forever. */
export const STORED_BATCH =
  'AQUAAADHAQAAAKjadpsBAAAAAAAAAHi72Tn+c2NmpiwcmBlZfH19g4ODGeRsGd7fY2TGFhbMoLBgbHiydiovAwMjM44MxIwlAzHj' +
  'zkDM0OBgJicDMcjboWchBkZmbJmIgZ0flFyYUQMBFkjgwjU7tVLXELXpmJGZlw6JM1AqaES0P0ESiNhnZ+CoVspOrcTtbDZQYxKS' +
  'wxlrGcEphDEbkvryFbyC/f0YQFU2IwCtZHJk'

/**
 * A batch with sightings that were sealed before seals were bound. Key and id of one of them name person 17 instead of 4: an
 * earlier program packed the rows after the 16th person of a batch like this.
 */
export const STORED_UNBOUND_SEALS =
  'AQIAAAARAgAAACrv7ZwBAAAAAAAAAHi72Tn+c6WWvW6jQBDHYeUUkS7F6d4g/SoYm2woHYJtgnGM+VqIIoSBA2IMy4fjjau8xz1D3sAv' +
  'li7a6FJdedVMMc3vp/+Mhgf/5wHwHBgiVv5VAJgC/u3j/c8F5cGAOydt2qVV/JUOcMX4Ac+dXfVp17Pu1zf69xyjBn+pwRnLBklrwv6o' +
  'R8D9HHA/ntgWRCXjveT5E+BOYDOWV5tFB4so8K5Xalyu82gHy6ounWn7GgdhfCzs+pDswznVg/i5HxnLViMQ94LjOmojIBVKqSjO26OR' +
  'UXM230ZILnQtrXdbPJQ25V1Rp+ZdviDS3h5u8tIuaic0THzrHWCGjrZpj/Z1t5Z1+oJktcGE6II58WgST2YT+76rMkvMdWppxTOSF1bl' +
  'SFkuUixQM+oN4ZjfiLtb1b0Pkp35W7MLJCgPLkryyq/Q+tVatnsYNv6hjBxLCS2DkNiHguIZK3tl9NPcFSXJbelUGd1MZlr5APsiWIrB' +
  '2Hca1JguxpqUkLHeZdcYjv1+ClW4FV2ve8mwkrE7+gm1paN2'

/** A batch of format 2, whose dictionary must never change. */
export const STORED_BATCH_2 =
  'AgQAAAAoBAAAAKQ4HJwBAAAAAAAAAHi72QQIZZ1auw7DIAz8l86Japc+1n5Ep1psQaqUqFuH/H1loCiEQ0UsUeSYHH4cOsWR8yBRgxEdglBj58' +
  'eSemumSVfObh1DMFC9xcEBLAOPxA/C6o1y9UaletMSIEzdYh+m4b+S8VYB1WT0gV5POagpQfkSUWe3+rf6nLfBcZwQhS8KFjWt+K4dttf3Z1ls' +
  '1sdS08BVcdzy4PX7t2NHBinYUPIDWLbbVt4IUN1Ed1QUoNC1kVp9tf5VX43y6GsGXPiZog+cFdg0icv95oSUUV9K7oPjAJlCtq39AseGOjU='
