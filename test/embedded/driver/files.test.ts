import { v7 } from 'uuid';
import { filesSuite } from '../../contracts/files/files.ts';
import { buildLauncher } from '../../support/harness/a-spawned-driver.ts';
import { aWatchedDriver } from '../../support/harness/a-watched-driver.ts';
import { tmpfsHasAttributes } from '../../support/harness/tmpfs-attributes.ts';

before(() => buildLauncher());

filesSuite('embedded', async () => {
  const watched = await aWatchedDriver();
  const { id } = await watched.launched();
  return {
    files: watched.driver.files,
    id,
    folder: '/home/sandbox',
    smallFolder: '/tmp',
    keepsMetadata: tmpfsHasAttributes(),
    unknownId: v7(),
    sh: (script) => watched.sh(id, script),
    close: () => watched.close(),
  };
});
