import { sqliteInstanceRecords } from '../../../src/embedded/store/sqlite-instance-records.ts';
import { instanceRecordsSuite } from '../../contracts/instance-records.ts';
import { aDatabase } from './a-database.ts';

instanceRecordsSuite('SQLite', async () => {
  const { database, close } = await aDatabase();
  return { records: sqliteInstanceRecords(database), close };
});
