import { expect } from 'chai';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { VolumeDirectories } from '../../src/embedded/driver/volume-directories.ts';
import { parseVolumeDirectory } from '../../src/model/templates/volume-directory.ts';

describe('directories as volumes', () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-volumes-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('are those that exist in the namespace, by name', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    const volumes = new VolumeDirectories([
      { namespace: 'red', claimName: 'b', path: folder },
      { namespace: 'red', claimName: 'a', path: folder },
      { namespace: 'blue', claimName: 'c', path: folder },
      { namespace: 'red', claimName: 'missing', path: join(folder, 'none') },
      { namespace: 'red', claimName: 'file', path: file },
    ]);

    const found = await volumes.list('red');

    expect(found.map(({ claimName }) => claimName)).to.deep.equal(['a', 'b']);
    expect(found[0]).to.deep.include({
      displayName: 'a',
      accessModes: ['ReadWriteMany'],
      storageClass: 'directory',
      phase: 'Bound',
    });
    expect(found[0]?.capacity).to.match(/^[1-9]\d*Mi$/);
    expect(await volumes.list('green')).to.deep.equal([]);
  });

  it('are found for a mount only in their own namespace', () => {
    const volumes = new VolumeDirectories([{ namespace: 'red', claimName: 'a', path: folder }]);

    expect(volumes.directoryOf('red', 'a')).to.equal(folder);
    expect(volumes.directoryOf('blue', 'a')).to.equal(undefined);
    expect(volumes.directoryOf('red', 'constructor')).to.equal(undefined);
  });

  it('are provided if any exist', () => {
    expect(new VolumeDirectories([]).provided).to.equal(false);
    expect(
      new VolumeDirectories([{ namespace: 'red', claimName: 'a', path: folder }]).provided,
    ).to.equal(true);
  });

  it('are written as NAMESPACE/CLAIM=/PATH', () => {
    expect(parseVolumeDirectory('red/data=/srv/a=b')).to.deep.equal({
      namespace: 'red',
      claimName: 'data',
      path: '/srv/a=b',
    });
    for (const wrong of [
      '',
      'red',
      'red/data',
      'red/data=srv',
      'red/data=/srv/../etc',
      'Red/data=/srv',
      'red/=/srv',
      '/data=/srv',
      'red/a/b=/srv',
      'red/data=/a\0b',
    ]) {
      expect(parseVolumeDirectory(wrong), wrong).to.equal(undefined);
    }
  });
});
