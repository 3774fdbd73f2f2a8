/** The container lacks our agent, or cannot run it. */
export class NoAgent extends Error {
  override readonly name = 'NoAgent';

  constructor() {
    super('the agent of Sandpool can not be run in its Pod');
  }
}
