/** The container has no agent of ours, or none that can run on its node. */
export class NoAgent extends Error {
  override readonly name = 'NoAgent';

  constructor() {
    super('the agent of Sandpool can not be run in its Pod');
  }
}
