import { expect } from 'chai';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ProgramNotes } from '../../../src/embedded/spawner/sandbox/notes.ts';

describe('notes of sandboxes with processes', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-notes-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('tell the next spawner once why processes ended, except for those already reported', () => {
    const notes = new ProgramNotes(folder);
    for (const id of ['one', 'two', 'three']) notes.set(id, true);
    notes.set('two', false);
    notes.end('it was stopped');
    notes.set('one', false); // as it is killed with the spawner

    const next = new ProgramNotes(folder);
    expect([...next.take()]).to.have.deep.members([
      ['one', 'it was stopped'],
      ['three', 'it was stopped'],
    ]);
    expect(next.take().size).to.equal(0);
  });

  it('do not stop a spawner if they cannot be read or written', () => {
    writeFileSync(join(folder, 'programs'), 'no folder');
    const notes = new ProgramNotes(folder);
    notes.set('one', true);
    notes.end('it was stopped');
    expect(notes.take().size).to.equal(0);

    rmSync(join(folder, 'programs'));
    mkdirSync(join(folder, 'programs', 'one'), { recursive: true });
    expect([...new ProgramNotes(folder).take()]).to.deep.equal([
      ['one', 'the process that ran them was killed'],
    ]);
    expect(new ProgramNotes(folder).take().size).to.equal(0);
  });
});
