import { sqliteRecordStore } from '../../../src/embedded/store/record-store.ts';
import { recordStoreSuite } from '../../contracts/record-store.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { aDatabase } from './a-database.ts';

recordStoreSuite('SQLite', async () => {
  const { database, close } = await aDatabase();
  return { store: sqliteRecordStore(database, quietLog), close };
});
