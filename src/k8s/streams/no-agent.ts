/** The container lacks our agent, or cannot run it. */
export class NoAgent extends Error {
  override readonly name = 'NoAgent';

  constructor() {
    super("Sandpool's agent cannot run in its Pod");
  }
}
