'use strict';
// Indexes in the array of numbers that the main thread and the reader's thread share.

module.exports = {
  ENDED: 0, // the newest block that has ended
  ASKED: 1, // the newest block that was asked to end
  MAIL: 2, // incremented with every frame that is passed on
  WRITTEN: 3, // incremented when the reader has written what the main thread could not
  DOOMED: 4, // 1 while the termination of what the main thread is doing is on its way
  PLACES: 5,
  INTERRUPT: Symbol.for('interpreter.interrupt'), // the global property with the main thread's interrupt function
};
