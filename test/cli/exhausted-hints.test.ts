import { expect } from 'chai';
import { ApiError } from '../../src/cli/client/api-error.ts';
import { explain } from '../../src/cli/common/failure.ts';

const hints = (detail: object): readonly string[] =>
  explain(
    new ApiError(
      429,
      {},
      JSON.stringify({ error: 'no idle pods', errorCode: 'POOL_EXHAUSTED', detail }),
    ),
  ).slice(1);

describe('the remedy for an exhausted pool', () => {
  const hint = 'a sentence for people, which may change';

  it('is the command for the action that the service names, whatever its hint says', () => {
    const larger = { type: 'enlarge-pool', poolName: 'p' };
    expect(hints({ hint, running: 0, action: larger }).slice(1)).to.deep.equal([
      'enlarge the pool: sandpool pools update p --replicas N',
    ]);
    expect(hints({ hint, running: 2, starting: 1, action: larger })).to.deep.equal([
      "2 of the pool's sandboxes are running, 1 are starting",
      'delete a sandbox: sandpool sandboxes list, then: sandpool sandboxes delete SANDBOX',
      'or enlarge the pool: sandpool pools update p --replicas N',
    ]);
    expect(
      hints({ hint, running: 0, action: { ...larger, owner: 'school/teacher' } }).slice(1),
    ).to.deep.equal(["ask school/teacher, the pool's owner, to enlarge it"]);
    expect(hints({ hint, action: { ...larger, env: 'web', member: 'small' } }).join()).to.include(
      'sandpool envs members update web small --max-replicas N',
    );
  });

  it('names the command that changes what cannot start', () => {
    const problem = 'ErrImagePull';
    const of = (action: object): string =>
      hints({ hint, problem, action: { poolName: 'p', ...action } }).join('\n');
    expect(of({ type: 'change-image' })).to.include('sandpool pools update p --image IMAGE');
    expect(of({ type: 'change-image', env: 'web', member: 'small' })).to.include(
      'sandpool envs update web --image IMAGE',
    );
    expect(of({ type: 'reduce-resources', env: 'web', member: 'small' })).to.include(
      'sandpool envs members update web small --cpu CPU --memory MEMORY',
    );
    expect(of({ type: 'change-definition', owner: 'school/teacher' })).to.include(
      'as school/teacher, sandpool pools update p --file FILE',
    );
  });

  it("is the service's hint if this version has no command for the action", () => {
    for (const action of [undefined, 'odd', { type: 'retry' }, { type: 'constructor' }])
      expect(hints({ hint, action })).to.deep.equal([hint]);
  });

  it('never prints control characters of a name', () => {
    expect(
      hints({ running: 0, action: { type: 'enlarge-pool', poolName: '\u001b[2J' } })[1],
    ).to.include('update ?[2J');
  });
});
