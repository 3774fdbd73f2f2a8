/** The container has no agent of ours. */
export class NoAgent extends Error {
  override readonly name = 'NoAgent';

  constructor() {
    super(
      'its Pod has no agent of Sandpool, since it was made while the setting ' +
        'kubernetes.agentImage was empty',
    );
  }
}
