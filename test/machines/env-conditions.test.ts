import { expect } from 'chai';
import { type EnvConditionsInput, envConditionsOf } from '../../src/machines/env/conditions.ts';
import type { MemberState } from '../../src/model/envs/env.ts';

const aMember = (name: string, state: MemberState): EnvConditionsInput['members'][number] => ({
  ...{ name, state, synced: true, trouble: undefined, moving: false },
  config: {},
});

const readyOf = (...members: EnvConditionsInput['members']) =>
  envConditionsOf({
    deleting: false,
    templateRef: { name: 'default' },
    template: { found: true, kept: true },
    members,
    groups: [],
    limits: {},
    led: true,
    saved: [],
  }).find(({ type }) => type === 'Ready');

describe('the condition Ready of an env', () => {
  it('is true while every member is active, saturated or draining', () => {
    const members = [aMember('a', 'Active'), aMember('b', 'Saturated'), aMember('c', 'Draining')];

    expect(readyOf(...members)).to.include({ status: 'True', reason: 'MembersReady' });
    expect(readyOf()).to.include({ status: 'True', reason: 'NoMembers' });
  });

  it('names only the members that are not', () => {
    expect(readyOf(aMember('a', 'Active'), aMember('b', 'Pending'))).to.include({
      status: 'False',
      reason: 'MembersNotReady',
      message: 'b is Pending',
    });
  });
});
