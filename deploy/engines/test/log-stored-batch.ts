/** A batch as this format stores it: a changed dictionary or frame makes it unreadable. */
export const STORED_BATCH =
  'AQUAAABUBAAAAKjadpsBAAAAAAAAAJkKDHi76Tae96WUuw6DMAxFf6XKHERcRLt27tAO7VSLjfQhUDp14O8rm0cT2UiILhAZ45P4XgdLi4OMzhnLS/' +
  'D+PiyLuqY/G99lQG8uq5rAORZBFQsyB1eXiDXpskwGjUnbXMcsIIWChO5noNSQddDdNoUWEgrlQG18x1W578tw0OMClaEq4b05Xs4nEkxaGNnDNn6G' +
  'T9vyo0qsjZO3uRM/Z9t/Pjxf4cGhGDgOCYopkXOjRMQBaKjQRJvIR6ceNLWMFbnksKW5ZIzZXDpvzmIqKXBL+9BPNaqWmqZ9fTjFJTcEyitCuTW0UN' +
  'T8qvoCt0VJIg=='
