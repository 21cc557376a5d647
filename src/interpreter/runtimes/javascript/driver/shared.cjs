'use strict';
// What the main thread and the reader's thread tell each other without a message: places in their shared numbers.

module.exports = {
  ENDED: 0, // the newest block that has ended
  ASKED: 1, // the newest block that was asked to end
  MAIL: 2, // grows with every frame that was handed over
  WRITTEN: 3, // grows when the reader has written what the main thread could not
  DOOMED: 4, // 1 while the termination of what the main thread is doing is on its way
  PLACES: 5,
  INTERRUPT: Symbol.for('interpreter.interrupt'), // where the main thread keeps the function that ends a busy block
};
